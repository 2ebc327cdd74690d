use others::{KNOBS as OTHERS, Other};

use super::BackgroundBase::{OfLimit, OfMemory};
use super::*;
use crate::platform::Nanos;

/// Another owner's table.
#[allow(unreachable_pub, reason = "a table is public where it is declared")]
mod others {
    crate::knobs! {
        /// A knob of another owner.
        Other of "others":

        Lamp "lamp" 1 in 0..=1 "0 or 1" Engine AtOnce "Light.";
        Patience "patience_ms" also "patience" 0 in 10..=500 or 0 "milliseconds" Device NextUse "0 waits for ever.";
    }
}

#[test]
fn tables_of_others_stand_behind_the_engines_own() {
    let mut settings = Settings::with([&OTHERS]);
    settings.add(&OTHERS);
    let rows = [&KNOBS, &PAGE_KNOBS, &OTHERS].map(|table| table.rows.len());
    assert_eq!(settings.all().count(), rows.iter().sum(), "each table is there once");
    let patience = Other::Patience.id(&settings);
    assert_eq!(settings.of(&OTHERS), [Other::Lamp.id(&settings), patience]);
    assert_eq!(settings.set_text("patience=20"), Ok(patience));
    assert_eq!((settings.get(patience), settings.get(Other::Lamp), settings.get(Knob::DirtyRatio)), (20, 1, 50));
    let device = DeviceSettings::new(&settings);
    device.set(&settings, Other::Patience, 30).unwrap();
    assert_eq!((device.get(&settings, patience), settings.get(patience)), (30, 20));
    assert_eq!(device.own(&settings), [("patience_ms", 30)]);
    assert!(Settings::new().of(&OTHERS).is_empty());
}

#[test]
#[should_panic(expected = "the knobs of others were not added")]
fn a_knob_of_a_table_that_is_not_there_is_nobodys() {
    Settings::new().get(Other::Lamp);
}

#[test]
#[should_panic(expected = "twins and another have a knob lamp")]
fn two_owners_have_no_knob_of_one_name() {
    static TWINS: KnobTable = KnobTable { owner: "twins", of_policy: false, rows: OTHERS.rows };
    Settings::with([&OTHERS, &TWINS]);
}

#[test]
fn a_value_beside_the_range_is_taken_and_said() {
    let mut settings = Settings::with([&OTHERS]);
    for value in [10, 0, 500] {
        settings.set(Other::Patience, value).unwrap();
    }
    for (text, message) in [
        ("patience_ms=9", "patience_ms: 9 is out of range (0, or 10 to 500 milliseconds; now 500)"),
        ("patience_ms=501", "patience_ms: 501 is out of range (0, or 10 to 500 milliseconds; now 500)"),
        (
            "patience_ms=-1",
            "patience_ms: '-1' is not a number, or a time such as 500ms, 30s or 5min (0, or 10 to 500 milliseconds; now 500)",
        ),
    ] {
        assert_eq!(settings.set_text(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_size_with_a_unit_of_two_meanings_is_refused_with_both() {
    let mut settings = Settings::new();
    let said = settings.set_text("dirty_bytes=64m").unwrap_err().to_string();
    assert_eq!(said, "dirty_bytes: '64m' is ambiguous: write 64MiB (powers of 1024) or 64MB (powers of 1000)");
    for (text, bytes) in [("64MiB", 64 << 20), ("64MB", 64_000_000), ("67108864", 64 << 20), ("67108864b", 64 << 20)] {
        settings.set_text(&format!("dirty_bytes={text}")).unwrap();
        assert_eq!(settings.get(Knob::DirtyBytes), bytes, "{text}");
    }
}

#[test]
fn an_unknown_name_is_told_with_those_near_to_it_or_with_all() {
    let settings = Settings::with([&OTHERS]);
    for (name, message) in [
        ("dirty_rati", "there is no knob 'dirty_rati' (did you mean 'dirty_ratio'?)"),
        ("patience_msec", "there is no knob 'patience_msec' (did you mean 'patience_ms'?)"),
        ("ratio", "there is no knob 'ratio' (did you mean 'dirty_ratio' or 'dirty_background_ratio'?)"),
        ("", "there is no knob ''; there are: dirty_ratio, dirty_bytes"),
        ("speed", "there is no knob 'speed'; there are: dirty_ratio, dirty_bytes"),
    ] {
        let said = settings.named(name).unwrap_err().to_string();
        assert!(said.starts_with(message), "{said}");
        let all = message.contains("there are");
        assert!(said.ends_with(if all { ", lamp, patience_ms" } else { message }), "{said}");
    }
}

#[test]
fn every_knob_takes_its_ends_and_refuses_what_lies_beyond() {
    for (knob, info) in Settings::with([&OTHERS]).all() {
        let mut settings = Settings::with([&OTHERS]);
        assert_eq!(settings.get(knob), info.default);
        for value in [info.min, info.max] {
            settings.set(knob, value).unwrap();
            assert_eq!(settings.get(knob), value);
        }
        let beyond = [info.min.checked_sub(1), info.max.checked_add(1)];
        for value in beyond.into_iter().flatten() {
            let message = settings.set(knob, value).unwrap_err().to_string();
            for part in [info.name.to_owned(), value.to_string(), info.range(), format!("now {}", info.max)] {
                assert!(message.contains(&part), "{message:?} does not say {part}");
            }
            assert_eq!(settings.get(knob), info.max, "the old value stays");
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
        assert_eq!((knob, settings.get(knob)), (PageKnob::SliceBytes.id(&settings), bytes));
    }
}

#[test]
fn a_device_has_the_engines_value_until_it_has_its_own() {
    let engine = Settings::new();
    let device = DeviceSettings::new(&engine);
    engine.change(PageKnob::BackgroundRatio, 33).unwrap();
    assert_eq!(device.get(&engine, PageKnob::BackgroundRatio), 33);
    device.set(&engine, PageKnob::BackgroundRatio, 0).unwrap();
    assert_eq!((device.get(&engine, PageKnob::BackgroundRatio), engine.get(PageKnob::BackgroundRatio)), (0, 33));
    assert_eq!(device.set(&engine, Knob::DirtyRatio, 5), Err(KnobError::NotPerDevice { name: "dirty_ratio" }));
    let message = device.set(&engine, PageKnob::BackgroundRatio, 101).unwrap_err().to_string();
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
    let (ratio, background_ratio) = (Knob::DirtyRatio.id(&settings), PageKnob::BackgroundRatio.id(&settings));
    let fits = |knob: KnobId, value, background| {
        let shares = Some(RatioBases { memory_bytes: 1 << 30, background });
        would_fit(&settings, &[(knob, value)], shares, &|knob| settings.get(knob))
    };
    assert!(fits(background_ratio, 50, OfMemory).is_err() && fits(background_ratio, 49, OfMemory).is_ok());
    assert!(fits(ratio, 10, OfMemory).is_err() && fits(background_ratio, 100, OfLimit).is_ok());
    settings.change(Knob::DirtyBytes, 8192).unwrap();
    assert!(fits(background_ratio, 50, OfMemory).is_ok());
}

#[test]
fn a_background_in_bytes_is_below_a_limit_that_is_a_share_of_memory() {
    let settings = Settings::new();
    for background in [OfMemory, OfLimit] {
        let shares = Some(RatioBases { memory_bytes: 1 << 30, background });
        let knob = Knob::BackgroundBytes.id(&settings);
        let fits = |value| would_fit(&settings, &[(knob, value)], shares, &|knob| settings.get(knob));
        assert_eq!(fits((1 << 29) - 1), Ok(()));
        let message = fits(1 << 29).unwrap_err().to_string();
        let both = "dirty_background_bytes=536870912 is not below dirty_ratio=50 (536870912 bytes)";
        assert!(message.starts_with(both), "{message}");
    }
    let knob = Knob::BackgroundBytes.id(&settings);
    let unknown = would_fit(&settings, &[(knob, 1 << 40)], None, &|knob| settings.get(knob));
    assert_eq!(unknown, Ok(()), "a share of nobody knows what");
}

#[test]
fn a_kernels_name_for_a_knob_is_known() {
    let mut settings = Settings::new();
    assert_eq!(settings.set_text("nr_requests=2048"), Ok(PageKnob::WriteDepth.id(&settings)));
    assert_eq!(settings.set_text("vm.dirty_ratio=30"), Ok(Knob::DirtyRatio.id(&settings)));
}

#[test]
fn a_switch_is_said_to_be_one() {
    let mut settings = Settings::with([&OTHERS]);
    for (text, message) in [
        ("lamp=7", "lamp: 7 is out of range (0 or 1; now 1)"),
        ("lamp=on", "lamp: 'on' is not a number (0 or 1; now 1)"),
    ] {
        assert_eq!(settings.set_text(text).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_time_may_have_a_unit_and_is_a_whole_number_of_its_rows() {
    let mut settings = Settings::with([&OTHERS]);
    for (text, value) in [("500ms", 500), ("0.25s", 250), ("0.5 s", 500), ("0s", 0)] {
        settings.set_text(&format!("patience_ms={text}")).unwrap();
        assert_eq!(settings.get(Other::Patience), value, "{text}");
    }
    for (text, value) in [("30s", 3_000), ("20ms", 2), ("5min", 30_000), ("0.5h", 180_000)] {
        settings.set_text(&format!("dirty_expire_centisecs={text}")).unwrap();
        assert_eq!(settings.get(Knob::ExpireCentisecs), value, "{text}");
    }
    let beyond = format!("1{}h", "0".repeat(40));
    for text in ["5ms", "1m", "s", ".5s", "1.s", "-1s", "+1s", "1e2s", "01s", "5us", "1 h s", "1min.", beyond.as_str()]
    {
        let said = settings.set_text(&format!("dirty_expire_centisecs={text}")).unwrap_err().to_string();
        assert!(said.contains("is not a number, or a time such as 500ms, 30s or 5min (1 to 360000"), "{said}");
    }
}

#[test]
fn a_time_is_converted_by_its_row() {
    let settings = Settings::new();
    let ns = |knob: Knob| settings.ns(knob);
    assert_eq!((ns(Knob::ExpireCentisecs), ns(Knob::WritebackCentisecs)), (30 * Nanos::SECOND, 5 * Nanos::SECOND));
    let mut settings = Settings::with([&OTHERS]);
    settings.set(Other::Patience, 20).unwrap();
    assert_eq!(settings.ns(Other::Patience), 20 * Nanos::MILLISECOND);
}

#[test]
#[should_panic(expected = "dirty_ratio counts percent, which is no time")]
fn what_is_no_time_is_not_converted() {
    Settings::new().ns(Knob::DirtyRatio);
}
