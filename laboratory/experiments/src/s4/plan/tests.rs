#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::experiment::tests::asked;
use crate::s4::S4;

fn plan(pairs: &[(&str, &str)]) -> Result<Plan, LabError> {
    Plan::read(&asked(&S4, pairs)?)
}

#[test]
fn the_defaults_are_what_the_seed_measured() {
    let plan = plan(&[]).unwrap();
    assert!(plan.is_published);
    assert_eq!((plan.centisecs.len(), plan.records.len()), (4, 10));
    assert_eq!(plan.memory_bytes, 899_997_696);
    assert_eq!((plan.write_bytes_for(4096), plan.write_bytes_for(10_485_760)), (32_768, 32_768));
    // 120 KiB in one command: 25 MB a second with the command's fixed time.
    let disk = plan.disk().unwrap();
    let (bytes, rate) = (disk.get("request_bytes_max"), disk.get("interface_bytes_per_second"));
    let command_ns = disk.get("command_ns") + bytes * 1_000_000_000 / rate;
    assert_eq!(bytes * 1_000_000 / (command_ns / 1000), 25_001_017);
}

#[test]
fn a_quick_run_does_less_unless_told_otherwise() {
    let quick = |pairs: &[(&str, &str)]| Plan::read(&Request { quick: true, ..asked(&S4, pairs).unwrap() }).unwrap();
    let plan = quick(&[]);
    assert_eq!((plan.file_bytes, plan.records.len(), plan.variants.len()), (1_000_000_000, 4, 2));
    assert!(plan.is_published, "a whole file as the seed's");
    assert_eq!(quick(&[("size", "300MB")]).file_bytes, 300_000_000);
}

#[test]
fn what_the_options_change() {
    let changed = plan(&[("link", "1Gbit,delay=1ms"), ("write-size", "record"), ("record", "4096,10MiB")]).unwrap();
    assert_eq!((changed.link.bits_per_second, changed.link.delay_ns), (1_000_000_000, 1_000_000));
    assert_eq!((changed.write_bytes_for(4096), changed.write_bytes_for(10 << 20)), (4096, 1 << 20));
    assert!(!changed.is_published, "the seed had another link");
    let measured = |text| Plan::read(&Request { measured: true, ..asked(&S4, &[("link", text)]).unwrap() });
    assert!(measured("1Gbit").is_ok());
    assert!(measured("1Gbit,delay=1ms").unwrap_err().to_string().contains("a rate and nothing else"));
    let slower = plan(&[("disk-rate", "12.5MB")]).unwrap().disk().unwrap();
    assert_eq!(slower.get("interface_bytes_per_second"), 12_759_594);
}

#[test]
fn no_part_of_the_disk_is_slower_than_the_rate_that_was_asked_for() {
    for rate in ["25MB", "60MB", "120MB", "500MB"] {
        let plan = plan(&[("disk-rate", rate)]).unwrap();
        let (disk, disk_bytes_per_s) = (plan.disk().unwrap(), plan.disk_bytes_per_s);
        let interface = disk.get("interface_bytes_per_second");
        let command_ns = disk.get("command_ns") + disk.get("request_bytes_max") * 1_000_000_000 / interface;
        let asked_ns = disk.get("request_bytes_max") * 1_000_000_000 / disk_bytes_per_s;
        assert!(command_ns.abs_diff(asked_ns) <= 1, "{rate}: {command_ns} ns of {asked_ns}");
        assert!(disk.zones.iter().all(|(_, zone)| *zone >= interface), "{rate}: {:?} below {interface}", disk.zones);
    }
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (name, value, words) in [
        ("link", "0", "rate=0: it takes 1 kbit to 1000 Gbit"),
        ("link", "fast", "it takes 1 kbit to 1000 Gbit"),
        ("link", "100Mbit,speed=1", "there is no \"speed\""),
        ("disk-rate", "0", "1 MB/s to 500 MB/s"),
        ("disk-rate", "2GB", "1 MB/s to 500 MB/s"),
        ("size", "", "100 GB"),
        ("size", "0", "4 KiB to 100 GB"),
        ("size", "12", "4 KiB to 100 GB"),
        ("client-window", "1kB", "1 MB to 100 GB"),
        ("centisecs", "100,often", "0 to 360000"),
        ("centisecs", "360001", "0 to 360000"),
        ("centisecs", "-5", "'-5' is not a number from 0 to 360000"),
        ("centisecs", "", "0 to 360000"),
        ("centisecs", "100,0,100", "each once"),
        ("record", "4096,", "512 bytes to 1 GiB"),
        ("record", "0", "512 bytes to 1 GiB"),
        ("record", "2GiB", "512 bytes to 1 GiB"),
        ("write-size", "2MiB", "or 'record'"),
        (
            "client-window",
            "2GB",
            "a window of 2.00 GB is more than a client's file has (1.00 GB, --size and --clients)",
        ),
        ("samples", "0", "1 to 20"),
        ("memory", "1MB", "16 MB to 64 GB"),
    ] {
        let error = plan(&[(name, value)]).unwrap_err().to_string();
        assert!(
            error.contains(&format!("--{name} ")) && error.contains(value) && error.contains(words),
            "{name}={value}: {error}"
        );
    }
}

#[test]
fn published_cells_stand_only_beside_what_the_seed_measured() {
    for (name, value) in [
        ("memory", "1GB"),
        ("write-size", "64KiB"),
        ("link", "1Gbit"),
        ("disk-rate", "30MB"),
        ("client-window", "50MB"),
        ("size", "2GB"),
        ("clients", "2"),
    ] {
        assert!(!plan(&[(name, value)]).unwrap().is_published, "{name} {value}");
    }
    assert!(plan(&[("memory", "900MB"), ("write-size", "32KiB"), ("clients", "1")]).unwrap().is_published);
}
