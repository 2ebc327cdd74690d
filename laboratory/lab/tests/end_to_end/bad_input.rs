//! Wrong use: the command exits with code 2, and names the value and the permitted values.

use crate::command::{Scratch, run, text};

#[test]
fn wrong_use_is_told_with_the_value_and_what_is_allowed() {
    let scratch = Scratch::new();
    for (arguments, parts) in [
        (
            vec!["simulate", "nfs-client", "--device", "usb2-disk", "--policy", "none"],
            vec!["'none'", "linux-3.6-completions, linux-6.1"],
        ),
        (vec!["run", "s9"], vec!["'s9'", "s0, s1, s2, s3, s4, throttled"]),
        (vec!["run", "writeback-real", "--policy", "none"], vec!["no policy 'none'", "afflux"]),
        (vec!["run", "classes", "--block", "5000"], vec!["--block 5000", "multiple of 4 KiB"]),
        (vec!["run", "s4", "--speed", "1"], vec!["'--speed'", "--help"]),
        (vec!["run", "s4", "--centisec", "5"], vec!["'--centisec'", "'--centisecs'"]),
        (vec!["run", "s4", "--centisecs", "-5"], vec!["'-5' for '--centisecs", "0 to 360000"]),
        (vec!["run", "s4", "--link", "0"], vec!["'0' for '--link", "1 kbit to 1000 Gbit"]),
        (vec!["run", "s4", "--record", "0"], vec!["'0' for '--record", "512 bytes to 1 GiB"]),
        (vec!["run", "s4", "--size", "0"], vec!["'0' for '--size", "4 KiB to 100 GB"]),
        (vec!["run", "s4", "--client-window", "2GB"], vec!["--client-window 2GB", "1.00 GB, --size"]),
        (vec!["dance"], vec!["unrecognized subcommand 'dance'"]),
    ] {
        let output = run(scratch.path(), &arguments);
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for part in parts {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
}

/// Names of knobs, disks, policies, workloads, files, options, on the command line and in the files that it names.
#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let scratch = Scratch::new();
    let good = scratch.file("backup.fio", "[a]\ndirectory=/afflux\nrw=write\nsize=1m\n");
    let missing = scratch.path().join("bakcup.fio").to_str().unwrap().to_owned();
    let option = scratch.file("option.fio", "[a]\nrw=write\nsiez=1m\n");
    let engine = scratch.file("engine.fio", "[a]\nrw=write\nsize=1m\nioengine=libiao\n");
    let waits = scratch.file("waits.fio", "[first]\nrw=write\nsize=1m\n[second]\nrw=write\nsize=1m\nwait_for=frist\n");
    let disk = scratch.file("disk.toml", "about = 'mine'\nkind = 'rotating'\nrotations_per_minut = 7200\n");
    let faults = scratch.file("faults.toml", "[[fault]]\ndo = 'eror'\n");
    let fault_file = scratch.file("file.toml", "[[fault]]\ndo = 'error'\ntarget = 'write'\nfile = '/afflux/a.0.1'\n");
    let on = ["--device", "usb2-disk"];
    for (arguments, wanted) in [
        (vec!["simulate", &good, on[0], on[1], "--set", "dirty_rato=20"], "'dirty_ratio'"),
        (vec!["simulate", &good, on[0], "usb2-dsk"], "'usb2-disk'"),
        (vec!["simulate", &good, on[0], "usb2-disk,write_cache_byte=0"], "'write_cache_bytes'"),
        (vec!["simulate", &good, on[0], on[1], "--policy", "linux-6.0"], "'linux-6.1'"),
        (vec!["simulate", &good, on[0], on[1], "--faults", &faults], "'error'"),
        (vec!["simulate", &good, on[0], on[1], "--faults", &fault_file], "a.0.0'"),
        (vec!["simulate", &missing, on[0], on[1]], "backup.fio'"),
        (vec!["simulate", "nfs-clint:size=1GB", on[0], on[1]], "'nfs-client'"),
        (vec!["simulate", "readers:blok=512", on[0], on[1]], "'block'"),
        (vec!["simulate", &option, on[0], on[1]], "'size'"),
        (vec!["simulate", &engine, on[0], on[1]], "'libaio'"),
        (vec!["simulate", &waits, on[0], on[1]], "'first'"),
        (vec!["devices", "nvme-sdd"], "'nvme-ssd'"),
        (vec!["devices", &disk], "'rotations_per_minute'"),
        (vec!["run", "throtled"], "'throttled'"),
        (vec!["run", "s1", "--case", "two-writer"], "'two-writers'"),
    ] {
        let output = run(scratch.path(), &arguments);
        let said = text(&output);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let question = said.split("(did you mean ").nth(1).and_then(|rest| rest.split("?)").next());
        assert!(question.is_some_and(|names| names.contains(wanted)), "{arguments:?}: {said}");
    }
}
