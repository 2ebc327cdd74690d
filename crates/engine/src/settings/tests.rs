use super::BackgroundShare::{OfLimit, OfMemory};
use super::*;

#[test]
fn every_knob_takes_its_ends_and_refuses_what_lies_beyond() {
    for (knob, info) in Knob::ALL.iter().zip(KNOBS) {
        let mut settings = Settings::new();
        assert_eq!(settings.get(*knob), info.default);
        for value in [info.min, info.max] {
            settings.set(*knob, value).unwrap();
            assert_eq!(settings.get(*knob), value);
        }
        let beyond = [info.min.checked_sub(1), info.max.checked_add(1)];
        for value in beyond.into_iter().flatten() {
            let message = settings.set(*knob, value).unwrap_err().to_string();
            for part in [info.name.to_owned(), value.to_string(), info.min.to_string(), info.max.to_string()] {
                assert!(message.contains(&part), "{message:?} does not say {part}");
            }
            assert_eq!(settings.get(*knob), info.max, "the old value stays");
        }
    }
}

#[test]
fn nonsense_is_named_with_what_would_do() {
    let mut settings = Settings::new();
    for text in
        ["dirty_ratio=ten", "dirty_ratio=", "dirty_ratio=-1", "dirty_ratio=99999999999999999999", "dirty_ratio=1.5"]
    {
        let message = settings.set_text(text).unwrap_err().to_string();
        assert!(
            message.contains("dirty_ratio") && message.contains("1 to 90") && message.contains("now 50"),
            "{message}"
        );
    }
    assert!(settings.set_text("dirty_ratio").unwrap_err().to_string().contains("'dirty_ratio' is not KNOB=VALUE"));
    let message = settings.set_text("dirty_rati=3").unwrap_err().to_string();
    assert!(message.contains("'dirty_rati'") && message.contains("dirty_ratio"), "{message}");
}

#[test]
fn bytes_may_have_a_unit() {
    let mut settings = Settings::new();
    for (text, bytes) in [("64MiB", 64 << 20), ("1MB", 1_000_000), ("8192", 8192)] {
        let knob = settings.set_text(&format!(" writeback_slice_bytes = {text} ")).unwrap();
        assert_eq!((knob, settings.get(knob)), (Knob::SliceBytes, bytes));
    }
}

#[test]
fn a_device_has_the_engines_value_until_it_has_its_own() {
    let (engine, device) = (Settings::new(), DeviceSettings::default());
    engine.change(Knob::BackgroundRatio, 33).unwrap();
    assert_eq!(device.get(&engine, Knob::BackgroundRatio), 33);
    device.set(&engine, Knob::BackgroundRatio, 0).unwrap();
    assert_eq!((device.get(&engine, Knob::BackgroundRatio), engine.get(Knob::BackgroundRatio)), (0, 33));
    assert_eq!(device.set(&engine, Knob::DirtyRatio, 5), Err(KnobError::NotPerDevice { name: "dirty_ratio" }));
    let message = device.set(&engine, Knob::BackgroundRatio, 101).unwrap_err().to_string();
    assert!(message.contains("now 0"), "the device's own value is in force: {message}");
}

#[test]
fn a_background_in_bytes_is_below_a_limit_in_bytes_or_refused_with_both() {
    let mut settings = Settings::new();
    settings.set_text("dirty_background_bytes=64MiB").unwrap();
    for text in ["dirty_bytes=64MiB", "dirty_bytes=1MiB"] {
        let message = settings.set_text(text).unwrap_err().to_string();
        let value = settings.parse(text).unwrap().1.to_string();
        assert!(message.contains("dirty_background_bytes=67108864") && message.contains(&value), "{message}");
        assert_eq!(settings.get(Knob::DirtyBytes), 0, "the old value stays");
    }
    settings.set_text("dirty_bytes=128MiB").unwrap();
    assert!(settings.set_text("dirty_background_bytes=128MiB").is_err());
    settings.set_text("dirty_background_bytes=0").unwrap();
    settings.set_text("dirty_bytes=1MiB").unwrap();
}

#[test]
fn by_a_kernels_law_ratios_are_compared_too_and_bytes_take_their_place() {
    let settings = Settings::new();
    let fits = |knob, value, background| {
        Settings::would_fit(knob, value, Some(Shares { memory_bytes: 1 << 30, background }), &|knob| settings.get(knob))
    };
    assert!(fits(Knob::BackgroundRatio, 50, OfMemory).is_err() && fits(Knob::BackgroundRatio, 49, OfMemory).is_ok());
    assert!(fits(Knob::DirtyRatio, 10, OfMemory).is_err() && fits(Knob::BackgroundRatio, 100, OfLimit).is_ok());
    settings.change(Knob::DirtyBytes, 8192).unwrap();
    assert!(fits(Knob::BackgroundRatio, 50, OfMemory).is_ok());
}

#[test]
fn a_background_in_bytes_is_below_a_limit_that_is_a_share_of_memory() {
    let settings = Settings::new();
    for background in [OfMemory, OfLimit] {
        let shares = Some(Shares { memory_bytes: 1 << 30, background });
        let fits = |value| Settings::would_fit(Knob::BackgroundBytes, value, shares, &|knob| settings.get(knob));
        assert_eq!(fits((1 << 29) - 1), Ok(()));
        let message = fits(1 << 29).unwrap_err().to_string();
        let both = "dirty_background_bytes=536870912 is not below dirty_ratio=50 (536870912 bytes)";
        assert!(message.starts_with(both), "{message}");
    }
    let unknown = Settings::would_fit(Knob::BackgroundBytes, 1 << 40, None, &|knob| settings.get(knob));
    assert_eq!(unknown, Ok(()), "a share of nobody knows what");
}

#[test]
fn a_kernels_name_for_a_knob_is_known() {
    let mut settings = Settings::new();
    assert_eq!(settings.set_text("nr_requests=2048"), Ok(Knob::WriteDepth));
    assert_eq!(settings.set_text("vm.dirty_ratio=30"), Ok(Knob::DirtyRatio));
    for name in ["strict_limit", "min_ratio", "max_ratio", "min_bytes", "max_bytes", "dirty_background_centisecs"] {
        assert!(Knob::named(name).is_ok(), "{name}");
    }
}

#[test]
fn a_switch_is_said_to_be_one() {
    let mut settings = Settings::new();
    for (text, message) in [
        ("strict_limit=7", "strict_limit: 7 is out of range (0 or 1; now 0)"),
        ("strict_limit=on", "strict_limit: 'on' is not a number (0 or 1; now 0)"),
    ] {
        assert_eq!(settings.set_text(text).unwrap_err().to_string(), message);
    }
}
