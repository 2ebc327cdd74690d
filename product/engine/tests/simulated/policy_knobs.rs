//! Policy knobs that the engine does not know: a policy defines its knobs and finds their values in its view.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use afflux_engine::Policies;
use afflux_engine::policy::{
    Admission, ChargeBounds, Completed, Cost, DevicePolicy, LentMemory, LimitPages, Needs, Pace, PauseCause, View,
};
use afflux_engine::settings::{Knob, PageKnob, Settings, WhichKnob};
use afflux_simulator::{DiskOptions, OWN_POLICY, Setup};

use crate::fixture::{EngineFixture, MILLISECOND, PAGE, SECOND};
use own::{KNOBS, OwnKnob};

#[allow(unreachable_pub, reason = "a table is public where it is declared")]
mod own {
    afflux_engine::knobs! {
        /// A knob of the policy in this test.
        OwnKnob of policy "a test":

        Idle "idle_pages" 0 in 0..=1 "0 or 1" Device AtOnce "Something else.";
        ChargeBounds "room_pages" 8 in 4..=100 "pages" Device AtOnce "What each device may have dirty.";
    }
}

/// Limits the dirty pages of each device by a knob.
struct ByKnob;

impl DevicePolicy for ByKnob {
    type Payer = ();
    type Device = ();
    type Shared = ();

    fn name(&self) -> &'static str {
        "by knob"
    }

    fn needs(&self) -> Needs {
        Needs { knobs: Some(&KNOBS), ..Needs::NONE }
    }

    fn pause_ns_max(&self) -> u64 {
        0
    }

    fn start(&self, _: u64, _: u64) -> Pace {
        Pace::UNASKED
    }

    fn charge_bounds(&self, view: &View, (): &mut ()) -> ChargeBounds {
        let cost_max = Cost(view.knobs.own.get(OwnKnob::ChargeBounds));
        ChargeBounds { cost_max, cause: PauseCause::DevicePart, ..ChargeBounds::UNLIMITED }
    }

    fn admit(&self, _: &View, _: LentMemory<'_, Self>) -> Admission {
        Admission::Enter
    }

    fn completed(&self, _: &View, _: &[Completed], (): &mut (), (): &mut ()) {}

    fn is_over_background(&self, _: &View, (): &mut (), (): &mut ()) -> bool {
        false
    }

    fn slice_bytes(&self, view: &View, (): &mut (), (): &mut ()) -> u64 {
        view.knobs.slice_bytes
    }

    fn limits(&self, view: &View, (): &mut (), (): &mut ()) -> LimitPages {
        // Makes the sum, and a knob of the engine's own, visible.
        let background = view.knobs.own_sums.get(OwnKnob::ChargeBounds);
        let bandwidth = Some(view.knobs.slice_bytes / PAGE as u64);
        LimitPages { dirty: view.knobs.own.get(OwnKnob::ChargeBounds), background, bandwidth }
    }
}

fn lab() -> EngineFixture {
    let policies = Policies { policy: Arc::new(ByKnob), ..Policies::default() };
    EngineFixture::with_policies(1, 256, &[DiskOptions::default(), DiskOptions::default()], &[], policies)
}

#[test]
fn a_policys_own_knob_acts_at_once_and_for_the_device_that_it_was_set_for() {
    let lab = lab();
    let here = Arc::clone(&lab.here);
    let ended = [0, 1].map(|disk| {
        let (here, to) = (Arc::clone(&here), lab.file(disk, 0, 0));
        lab.here.disks[disk].hang();
        lab.in_background(async move {
            for at in 0..40 {
                here.write(&to, at * PAGE as u64, PAGE, 1).await.unwrap();
            }
        })
    });
    lab.run(here.sleep(SECOND));
    let limits = |device: usize| {
        let status = here.engine.status().devices[device].clone();
        (status.dirty_limit_bytes / PAGE as u64, status.background_threshold_bytes / PAGE as u64)
    };
    assert_eq!([limits(0), limits(1)], [(8, 16); 2], "both wait at the default");
    let set = here.engine.set_device_knob(here.devices[1], OwnKnob::ChargeBounds, 101).unwrap_err();
    assert_eq!(set.to_string(), "room_pages: 101 is out of range (4 to 100 pages; now 8)");
    here.engine.set_device_knob(here.devices[1], OwnKnob::ChargeBounds, 60).unwrap();
    lab.run(here.sleep(SECOND));
    assert_eq!([limits(0), limits(1)], [(8, 68), (60, 68)]);
    assert_eq!(ended.each_ref().map(|ended| ended.load(Ordering::Relaxed)), [false, true]);
    assert_eq!(here.engine.device_knobs(here.devices[1]), [("room_pages", 60)]);
    here.engine.set_knob(OwnKnob::ChargeBounds, 50).unwrap();
    lab.run(here.sleep(SECOND));
    assert_eq!((limits(0), limits(1), ended[0].load(Ordering::Relaxed)), ((50, 110), (60, 110), true));
}

#[test]
fn a_policy_sees_a_knob_that_acts_with_the_next_use() {
    let lab = lab();
    let (engine, devices) = (&lab.here.engine, &lab.here.devices);
    let seen = || [0, 1].map(|at: usize| engine.status().devices[at].write_bandwidth_bytes_per_s);
    engine.set_knob(PageKnob::SliceBytes, 8192).unwrap();
    assert_eq!(seen(), [Some(8192), Some(8192)]);
    engine.set_device_knob(devices[1], PageKnob::SliceBytes, 4096).unwrap();
    assert_eq!(seen(), [Some(8192), Some(4096)]);
}

#[test]
fn an_engine_adds_what_its_policy_brings() {
    let lab = lab();
    let settings = lab.here.engine.settings();
    assert!(
        settings.named("room_pages") == Ok(OwnKnob::ChargeBounds.id(settings))
            && Settings::new().named("room_pages").is_err()
    );
}

#[test]
fn who_waits_is_asked_again_only_when_a_knob_acts_at_once() {
    let lab = EngineFixture::plain(1);
    lab.run(lab.here.sleep(SECOND));
    let steps_after = |knob: Knob, value| {
        let before = lab.world.steps();
        lab.here.engine.set_knob(knob, value).unwrap();
        lab.run(lab.here.sleep(MILLISECOND));
        lab.world.steps() - before
    };
    let quiet = steps_after(Knob::ReadaheadBytes, 0);
    let looks = steps_after(Knob::DirtyRatio, 40);
    assert!(looks > quiet, "the flusher looks: {looks} steps, {quiet} without");
}

#[test]
fn a_knob_that_changes_nothing_under_the_policy_is_refused_with_the_one_to_set() {
    let refused = |policy: &str, knob: &str| {
        let setup = Setup::of(policy).unwrap();
        let knob = setup.settings.named(knob).unwrap_or_else(|error| panic!("{error}"));
        setup.policies.refuse_ignored(&setup.settings, knob).err().map(|error| error.to_string())
    };
    for knob in Setup::of(OWN_POLICY).unwrap().policies.policy.needs().ignores {
        let said = refused(OWN_POLICY, knob.name).unwrap();
        assert!(said.starts_with(knob.name) && said.contains("under afflux: set "), "{said}");
        assert_eq!(refused("equal-parts", knob.name), None, "{}", knob.name);
    }
    assert_eq!(
        refused(OWN_POLICY, "nr_requests").unwrap(),
        "writeback_depth changes nothing under afflux: set writeback_in_flight_ms"
    );
    assert!(refused("equal-parts", "budget_ms").unwrap().ends_with("under equal-parts: it is a knob of budget"));
    assert!(refused("linux-3.6", "strict_limit").unwrap().ends_with("under linux-3.6: set max_ratio"));
    for (policy, knob) in [(OWN_POLICY, "budget_ms"), (OWN_POLICY, "dirty_ratio"), ("linux-6.1", "min_bytes")] {
        assert_eq!(refused(policy, knob), None, "{policy} {knob}");
    }
    let lab =
        EngineFixture::with_policies(1, 256, &[DiskOptions::default()], &[], Setup::of(OWN_POLICY).unwrap().policies);
    assert!(lab.here.engine.refuse_ignored(PageKnob::WriteDepth).is_err());
    assert!(lab.here.engine.refuse_ignored(Knob::DirtyRatio).is_ok());
}
