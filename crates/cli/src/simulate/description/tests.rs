use super::{costs, knobs, memory, until};

#[test]
fn times_have_units() {
    for (text, ns) in [
        ("30s", 30_000_000_000),
        ("30", 30_000_000_000),
        ("1.5s", 1_500_000_000),
        ("500ms", 500_000_000),
        ("20us", 20_000),
        ("5min", 300_000_000_000),
        (" 2 h ", 7_200_000_000_000),
        ("7ns", 7),
    ] {
        assert_eq!(until(text).unwrap(), ns, "{text}");
    }
    for (text, part) in [
        ("soon", "'soon' is not a time such as 500ms, 30s, 5min or 2h"),
        ("", "'' is not a time"),
        ("0s", "'0s' is out of range (above 0, up to 8,760h)"),
        ("-1s", "out of range"),
        ("nan", "out of range"),
        ("9000h", "out of range"),
    ] {
        let said = until(text).unwrap_err().to_string();
        assert!(said.contains(part), "{text}: {said}");
    }
}

#[test]
fn memory_is_a_size_in_whole_pages() {
    assert_eq!(memory("512MiB").unwrap(), 512 << 20);
    assert_eq!(
        memory("1MB").map_err(|failure| failure.to_string()),
        Err("--memory: '1MB' is out of range (1.00 MiB to 1.00 TiB)".to_owned())
    );
    assert_eq!(memory("3000000").unwrap() % 4096, 0);
    let said = memory("lots").unwrap_err().to_string();
    assert_eq!(said, "--memory: 'lots' is not a size such as 512MiB or 2GiB (1.00 MiB to 1.00 TiB)");
}

#[test]
fn knobs_are_checked_before_the_run() {
    assert_eq!(knobs(&["dirty_ratio=20".to_owned()]).unwrap(), ["dirty_ratio=20"]);
    let said = knobs(&["dirty_ratio=91".to_owned()]).unwrap_err().to_string();
    assert!(said.starts_with("--set: dirty_ratio: 91 is out of range (1 to 90 percent"), "{said}");
}

#[test]
fn costs_are_a_table_or_a_file() {
    assert!(costs("epyc-2026").is_ok());
    for (text, part) in [
        ("cray-1", "--costs: there is no table 'cray-1'; there are epyc-2026, "),
        ("./none.toml", "./none.toml cannot be read: No such file"),
    ] {
        let said = costs(text).map(drop).unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
}
