use afflux_engine::settings::{BackgroundBase, Knob};

use super::*;

#[test]
fn each_name_has_a_setup_with_the_knobs_that_its_policy_starts_with() {
    for (name, _) in policies() {
        let setup = Setup::of(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (own, default) = (afflux_linux_policies::policy(name).is_err(), Settings::new());
        assert_eq!(setup.settings.get(Knob::DirtyRatio) == default.get(Knob::DirtyRatio), own, "{name}");
        assert_eq!(setup.shares(1 << 20).background == BackgroundBase::OfMemory, !own, "{name}");
    }
}

#[test]
fn a_policy_that_there_is_not_is_an_error_with_all_names() {
    let told = Setup::of("linux-7").map(drop).unwrap_err().to_string();
    assert!(told.contains("'linux-7'") && policies().iter().all(|(name, _)| told.contains(name)), "{told}");
}

#[test]
fn knobs_come_after_what_the_policy_sets() {
    let setup = Setup::of("linux-6.1").unwrap().with_knobs(&["dirty_ratio=33"]).unwrap();
    assert_eq!(setup.settings.get(Knob::DirtyRatio), 33);
    assert!(Setup::default().with_knobs(&["dirty_ratio=many"]).is_err());
}
