use afflux_engine::settings::{BackgroundBase, KnobInfo, RatioBases, TableKnob};

use super::*;
use crate::KernelKnob;

const BY_LAW: RatioBases = RatioBases { memory_bytes: 1 << 30, background: BackgroundBase::OfMemory };
const EQUAL_PARTS: RatioBases = RatioBases { background: BackgroundBase::OfLimit, ..BY_LAW };

#[test]
fn every_name_is_known_and_others_are_told_them() {
    for name in NAMES {
        let policy = policy(name).unwrap();
        assert_eq!(policy.name, *name);
        let law = &policy.policies.policy;
        assert_eq!(law.name(), *name);
        let mut settings = Settings::new();
        policy.prepare(&mut settings).unwrap();
        assert_eq!((settings.get(Knob::DirtyRatio), settings.get(PageKnob::WriteDepth)), (20, 128));
        assert_eq!(settings.background_is_below_limit(BY_LAW), Ok(()));
    }
    let message = policy("linux-7.0").err().unwrap().to_string();
    for part in NAMES.iter().chain(&["'linux-7.0'"]) {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_background_that_is_not_below_the_limit_is_refused_with_both_values() {
    let mut settings = Settings::new();
    policy("linux-6.1").unwrap().prepare(&mut settings).unwrap();
    settings.set_text("dirty_background_ratio=20").unwrap();
    let message = settings.background_is_below_limit(BY_LAW).unwrap_err().to_string();
    assert!(message.contains("dirty_background_ratio=20") && message.contains("dirty_ratio=20"), "{message}");
    assert_eq!(
        settings.background_is_below_limit(EQUAL_PARTS),
        Ok(()),
        "of the equal parts it is a share of the limit"
    );
    settings.set_text("dirty_bytes=26214400").unwrap();
    let message = settings.set_text("dirty_background_bytes=104857600").unwrap_err().to_string();
    assert!(message.contains("104857600") && message.contains("26214400"), "{message}");
    settings.set(Knob::BackgroundBytes, 104_857_600).unwrap();
    for shares in [BY_LAW, EQUAL_PARTS] {
        let message = settings.background_is_below_limit(shares).unwrap_err().to_string();
        assert!(message.contains("104857600") && message.contains("26214400"), "{message}");
    }
}

#[test]
fn knobs_of_other_kernels_are_known_as_such() {
    let settings = Settings::with([&crate::KNOBS]);
    let ignores = |name: &str, knob: &KnobInfo| {
        let policies = policy(name).unwrap().policies;
        policies.refuse_ignored(&settings, settings.named(knob.name).unwrap()).is_err()
    };
    for (knob, of) in [(Knob::BackgroundCentisecs.info(), "linux-3.6"), (KernelKnob::StrictLimit.info(), "linux-6.1")] {
        for name in NAMES {
            let base = name.strip_suffix("-completions").unwrap_or(name);
            assert_eq!(ignores(name, knob), base != of, "{name}");
        }
    }
    assert!(!ignores("linux-3.6", Knob::DirtyRatio.info()) && ignores("linux-6.1", PageKnob::SliceBytes.info()));
}

#[test]
fn the_later_laws_are_there_for_each_tick_rate_that_kernels_are_built_with() {
    for hz in TickRate::BUILT {
        for name in ["linux-3.6", "linux-6.1"] {
            assert_eq!(policy(&format!("{name}@{hz}")).unwrap().name, name);
        }
    }
    for wrong in ["linux-6.1@77", "linux-6.1@", "linux-2.6.31", "@250", "linux-6.1@250@250"] {
        let message = policy(wrong).err().unwrap().to_string();
        assert!(message.contains(&format!("'{wrong}'")) && message.contains("@250"), "{message}");
    }
}

#[test]
fn evictions_and_readaheads_are_found_by_their_names_and_an_unknown_one_lists_them() {
    assert!(EVICTIONS.iter().all(|kind| eviction(kind.name) == Ok(*kind) && !kind.about.is_empty()));
    assert_eq!(eviction("lru").unwrap_err(), "there is no eviction policy 'lru'; there are two-list and s3-window");
    assert!(READAHEADS.iter().all(|policy| readahead(policy.name()).unwrap().name() == policy.name()));
    assert!(readahead("linus").unwrap_err().contains("linux"));
}
