use afflux_engine::counters::{Counter, Counters, Local};

use super::*;

fn error(text: &str) -> String {
    CostTable::parse("my.toml", text).unwrap_err().to_string()
}

const HIT: &str = "machine = \"m\"\n[read_hit_pages]\nunit = \"ns/page\"\nsource = \"s\"\n";

#[test]
fn a_table_is_read_and_survives_its_text() {
    let text = format!("{HIT}value = 52.25\n[step]\nvalue = 40\nunit = \"ns/step\"\nsource = \"a \\\"b\\\"\"\n");
    let table = CostTable::parse("my.toml", &text).unwrap();
    assert_eq!((table.machine(), table.step_ns(), table.switch_ns()), ("m", 40, 0));
    let costs: Vec<_> = table.costs().iter().map(|cost| (cost.of.name(), cost.ps, cost.source.as_str())).collect();
    assert_eq!(costs, [("step", 40_000, "a \"b\""), ("read_hit_pages", 52_250, "s")]);
    assert_eq!(CostTable::parse("again.toml", &table.to_text()).unwrap(), table);
}

#[test]
fn tables_that_come_along_are_sound() {
    for name in CostTable::names() {
        let text = BUILT_IN.iter().find(|(known, _)| *known == name).unwrap().1;
        let table = CostTable::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(CostTable::named(name), Some(table.clone()));
        assert!(!table.costs().is_empty());
    }
    assert_eq!(CostTable::named("epyc-2026"), Some(CostTable::standard()));
    assert_ne!(CostTable::standard(), CostTable::free());
    assert_eq!(CostTable::named("abacus"), None);
}

#[test]
fn errors_name_file_line_key_and_range() {
    for (value, what) in [
        ("-1", "-1"),
        ("1000000000.001", "1000000000.001"),
        ("0.0005", "0.0005"),
        ("\"x\"", "\"x\""),
        ("1e3", "1e3"),
        ("nan", "nan"),
        ("0x10", "0x10"),
    ] {
        let expected = format!(
            "my.toml:5: read_hit_pages.value = {what}: it is a number of nanoseconds from 0 to 1000000000, with up to \
             3 decimals"
        );
        assert_eq!(error(&format!("{HIT}value = {value}\n")), expected);
    }
    assert_eq!(error(HIT), "my.toml:2: read_hit_pages has no value");
    let text = HIT.replace("ns/page", "us") + "value = 1";
    assert_eq!(error(&text), "my.toml:3: read_hit_pages.unit = \"us\": it is \"ns/page\"");
    assert_eq!(error(&(HIT.replace("\"s\"", "\" \"") + "value = 1")), "my.toml:2: read_hit_pages has no source");
    assert_eq!(error(&format!("{HIT}cost = 1")), "my.toml:5: read_hit_pages.cost: there are value, unit and source");
    assert_eq!(
        error("[step]\nvalue = 1\nunit = \"ns/step\"\nsource = \"s\""),
        "my.toml:1: machine: a file says which machine it is of"
    );
    assert_eq!(error("machine = 3"), "my.toml:1: machine is a text in quotes");
    assert_eq!(error("machine = \"m\"\nstep = 3"), "my.toml:2: step is a table: [step]");
    let unknown = error("machine = \"m\"\n\n[sync_ns]\nvalue = 1");
    assert!(
        unknown
            .starts_with("my.toml:3: nothing called 'sync_ns' costs anything; there are: step, switch, read_hit_pages"),
        "{unknown}"
    );
    assert!(error("machine = \"m\"\n[step\n").starts_with("my.toml:2: "), "{}", error("machine = \"m\"\n[step\n"));
}

#[test]
fn the_worth_of_counters_is_their_sum_times_their_costs() {
    let cost = |counter, ps| Cost { of: CostOf::Counter(counter), ps, source: "test".to_owned() };
    let table = CostTable::new("test", vec![cost(Counter::ReadHitPages, 1500), cost(Counter::PageIn, 2)]);
    let (counters, free) = (Counters::new(), CostTable::free());
    let local = Local::new(&counters);
    local.count(Counter::ReadHitPages, 3);
    local.count(Counter::PageIn, 4096);
    local.count(Counter::SyncNs, 1_000_000);
    assert_eq!((table.worth_ps(&local), free.worth_ps(&local)), (4500 + 8192, 0));
}
