use super::*;

fn parse(text: &str) -> Result<FaultScript, String> {
    FaultScript::parse("faults.toml", text).map_err(|error| error.to_string())
}

#[test]
fn every_kind_of_entry_is_read() {
    let script = parse(
        r#"
        [[fault]]
        do = "error"
        device = "usb"
        target = "write"
        file = "data.0"
        offset = "1 MiB"
        len = 65536
        skip = 10
        times = 3
        probability_per_mille = 500
        from = "2 s"
        until = "10 s"

        [[fault]]
        do = "delay"
        delay = "200 ms"
        every = "1 s"
        lasting = "50 ms"

        [[fault]]
        do = "bad-sectors"
        medium = "3 GiB"
        len = 512
        [[fault]]
        do = "hang"
        from = "1.5 s"
        [[fault]]
        do = "no-space"
        [[fault]]
        do = "power-loss"
        at = "5 s"
        [[fault]]
        do = "kill"
        at = "7 ns"
        [[fault]]
        do = "link-cut"
        from = "1 s"
        until = "2 s"
        "#,
    )
    .unwrap();
    let [error, delay, sectors, hang, space, power, kill, link] = &script.entries[..] else { panic!("{script:?}") };
    assert_eq!((error.line, error.device.as_deref(), error.file.as_deref()), (2, Some("usb"), Some("data.0")));
    let ScriptedWhat::Requests { fault, window } = &error.what else { panic!("{error:?}") };
    assert_eq!((fault.offset, fault.len, fault.skip, fault.times, fault.per_mille), (1 << 20, 65536, 10, Some(3), 500));
    assert_eq!((fault.target, fault.what), (FaultTarget::Write, FaultWhat::Error(DeviceError::Io { errno: 5 })));
    assert_eq!((window.from_ns, window.until_ns), (2_000_000_000, 10_000_000_000));
    let ScriptedWhat::Requests { fault, window } = &delay.what else { panic!("{delay:?}") };
    assert_eq!(fault.what, FaultWhat::Delay { ns: 200_000_000 });
    assert_eq!((window.every_ns, window.lasting_ns, window.until_ns), (1_000_000_000, 50_000_000, u64::MAX));
    let ScriptedWhat::Requests { fault, window } = &sectors.what else { panic!("{sectors:?}") };
    assert_eq!((window.medium, fault.times, fault.len), (Some((3 << 30, 512)), None, u64::MAX));
    assert!(matches!(hang.what, ScriptedWhat::Hang) && hang.from_ns == 1_500_000_000 && hang.until_ns == u64::MAX);
    assert!(matches!(space.what, ScriptedWhat::NoSpace));
    assert!(matches!(power.what, ScriptedWhat::PowerLoss) && power.from_ns == 5_000_000_000);
    assert!(matches!(kill.what, ScriptedWhat::ProcessKill) && kill.from_ns == 7);
    assert!(matches!(link.what, ScriptedWhat::LinkCut) && link.until_ns == 2_000_000_000);
    assert!(parse("").unwrap().entries.is_empty());
}

#[test]
fn a_mistake_is_named_with_its_place_and_what_is_allowed() {
    for (text, message) in [
        ("[[fault]]\ndo = \"explode\"", "faults.toml:2: do: \"explode\" is not one of error, lost, delay, hang"),
        ("[[fault]]\n\nwhen = 3", "faults.toml:3: when: no such key; there are do, device, target"),
        ("[[fault]]\ntarget = \"read\"", "faults.toml:1: do: is missing: one of error"),
        ("[[fault]]\ndo = \"error\"\ntimes = 0", "faults.toml:3: times: 0 is not within 1 to "),
        ("[[fault]]\ndo = \"error\"\ntimes = -1", "faults.toml:3: times: -1 is not a whole number"),
        ("[[fault]]\ndo = \"error\"\nprobability_per_mille = 1001", "1001 is not within 1 per mille to 1000 per mille"),
        ("[[fault]]\ndo = \"delay\"", "faults.toml:1: delay: is missing: delay needs it"),
        ("[[fault]]\ndo = \"delay\"\ndelay = \"soon\"", "faults.toml:3: delay: \"soon\" is not a time, as "),
        ("[[fault]]\ndo = \"power-loss\"\nat = \"1 s\"\ntimes = 2", "faults.toml:4: times: is of no use to power-loss"),
        (
            "[[fault]]\ndo = \"hang\"\nfrom = \"2 s\"\nuntil = \"1 s\"",
            "faults.toml:4: until: 1 s is not after from, 2 s",
        ),
        ("[[fault]]\ndo = \"bad-sectors\"\nlen = 1\noffset = 0\nmedium = 0", "exclude each other"),
        ("[[fault]]\ndo = \"error\"\nlasting = \"1 s\"", "faults.toml:3: lasting: goes with every"),
        ("[[fault]]\ndo = \"power-loss\"\nat = 20", "faults.toml:3: at: 20 has no unit; write \"20 s\", or min"),
        ("[[fault]]\ndo = \"power-loss\"\nat = \"1_0\"", "at: 1_0 has no unit"),
        ("[[fault]]\ndo = \"power-loss\"\nat = 2.5", "at: 2.5 has no unit"),
        ("[fault]\ndo = \"error\"", "fault: is written [[fault]]"),
        ("[[fault]\n", "faults.toml:1: not TOML: "),
        ("fault = [1]", "is written [[fault]]"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.contains(message), "{text:?} gives {error:?}, not {message:?}");
    }
}
