use afflux_report::Fields;

use super::*;
use crate::machine::row;

fn twelve(variant: &str, memory_mib: u64, rate: f64, switches: f64) -> Row {
    let params =
        Fields::new().with("nr_requests", 128).with("request_kib", 512).with("memory_mib", memory_mib).with("seed", 1);
    let metrics = Fields::new().with("throughput_mb_per_s", rate).with("file_switches_per_gb", switches);
    row("s1", variant, params, metrics, Fields::new())
}

fn three(memory_mib: u64, rates: [f64; 3]) -> Vec<Row> {
    let names = ["linux-2.6.31-rc1", WOKEN, FLUSHERS];
    names.iter().zip(rates).map(|(name, rate)| twelve(name, memory_mib, rate, 500.0)).collect()
}

#[test]
fn what_the_test_on_the_share_costs_is_said_of_each_memory() {
    let rows = Rows { twelve_disks: three(2048, [200.0, 150.0, 220.0]), ..Rows::default() };
    let found = findings(&rows, &[]);
    let said = found.says.join(" ");
    assert!(said.contains("(a queue holds 64 MiB, a disk's part of the dirty limit is about 34)"), "{said}");
    assert!(
        said.contains(
            "200 MB/s with 2.6.31-rc1, 150 with the test on the share (-25.0 %), 220 with flushers (+10.0 %)"
        ),
        "{said}"
    );
    assert_eq!(
        found.answer,
        "Twelve disks: 200 MB/s with 2.6.31-rc1, 150 with 2.6.31 (-25.0 %), 220 with flushers (+10.0 %)."
    );
}

#[test]
fn that_it_is_largest_with_the_least_memory_is_said_only_where_it_is() {
    let said = |large: [f64; 3]| {
        let twelve_disks = [three(2048, [200.0, 150.0, 220.0]), three(8192, large)].concat();
        findings(&Rows { twelve_disks, ..Rows::default() }, &[]).says.join(" ")
    };
    let largest = "The regression is largest with the least memory";
    assert!(said([200.0, 190.0, 220.0]).contains(largest));
    assert!(!said([200.0, 120.0, 220.0]).contains(largest));
    assert!(!shrinks_with_memory(&[(2048.0, 0.25)]), "one memory shows nothing");
}

#[test]
fn the_engine_stands_beside_the_best_kernel_of_its_setting() {
    let mut rows = three(2048, [200.0, 150.0, 220.0]);
    rows.push(twelve(AFFLUX, 2048, 231.0, 200.0));
    rows.extend(three(8192, [250.0, 150.0, 220.0]));
    rows.push(twelve(AFFLUX, 8192, 225.0, 200.0));
    let said = findings(&Rows { twelve_disks: rows, ..Rows::default() }, &[]).says.join(" ");
    assert!(said.contains("writes 90 to 105 % of what the best kernel of each setting does"), "{said}");
}

#[test]
fn syncs_in_turn_and_at_once_are_told_apart() {
    let sync = |passes: u64, ended: f64| {
        let params = Fields::new().with("passes", passes);
        row("s1", FLUSHERS, params, Fields::new().with("a_ends_s", 1.0).with("b_ends_s", ended), Fields::new())
    };
    let rows = Rows { sync_of_two: vec![sync(1, 4.0), sync(2, 2.0)], ..Rows::default() };
    let said = findings(&rows, &[]).says.join(" ");
    assert!(
        said.contains("after 4.00 s where each is waited for in turn, after 2.00 s where both are begun first"),
        "{said}"
    );
}
