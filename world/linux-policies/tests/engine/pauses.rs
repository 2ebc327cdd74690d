//! The longest pause of a writer under each law, by its kernel's formula.

use std::any::Any;

use afflux_engine::Nanos;
use afflux_engine::policy::{
    Admission, AnyPolicy, DeviceCounts, Dirtier, KnobValues, PayerCounts, PolicyKnobs, SharedCounts, View,
};
use afflux_linux_policies::{KNOBS, KernelKnob, NAMES, policy};
use afflux_simulator::Random;

use crate::fixture::MILLISECOND;

/// `HZ / 5`. Under 6.1 a sleep of 200 ticks ends at the begin of the next one.
fn longest_ms(name: &str) -> u64 {
    if name == "linux-6.1" { 201 } else { 200 }
}

fn law(name: &str) -> std::sync::Arc<dyn AnyPolicy> {
    policy(name).unwrap().policies.policy
}

/// A machine with limits of 20,000 and 10,000 pages, and with random counts between and above them.
fn view(random: &mut Random, now_ms: u64) -> View {
    let (reclaimable, writeback) = (random.below(25_000), random.below(5_000));
    let (of_others, bandwidth) = (random.below(25_000), random.below(50_000));
    let device = DeviceCounts { reclaimable, writeback, bandwidth, ..DeviceCounts::default() };
    let dirty = reclaimable + of_others;
    let mut view = View::new(Nanos(now_ms * MILLISECOND), device);
    view.shared = SharedCounts { cached: 100_000, dirty, writeback, ..SharedCounts::default() };
    (view.cpus, view.memory_pages) = (random.between(1, 4), 100_000);
    view.knobs = KnobValues {
        dirty_bytes: 20_000 * 4096,
        background_bytes: 10_000 * 4096,
        own: PolicyKnobs::defaults(&KNOBS).with(KernelKnob::StrictLimit, random.chance(300).into()),
        ..KnobValues::default()
    };
    view.payer = PayerCounts { dirtied: random.between(1, 3_000), ..PayerCounts::default() };
    view
}

/// The decisions of one call, each with its view.
fn call(
    law: &dyn AnyPolicy,
    memory: &mut [Box<dyn Any + Send>; 3],
    views: &mut dyn FnMut() -> View,
) -> Vec<(View, Admission)> {
    let mut pace = law.start(100_000, 1);
    let mut decisions = Vec::new();
    for _ in 0..20 {
        let view = views();
        let [task, device, shared] = memory;
        let dirtier = Dirtier { pages: view.payer.dirtied, cpu: 0, cpus: view.cpus, memory_pages: view.memory_pages };
        law.allowance_pages(&dirtier, &mut **task, &mut **device, &mut **shared);
        let decision = law.admit(&view, &mut **task, &mut **device, &mut **shared, &mut pace);
        decisions.push((view, decision));
        match decision {
            Admission::Enter | Admission::EnterAfter(_) => break,
            _ => {}
        }
    }
    decisions
}

#[test]
fn no_pause_is_longer_than_the_kernels_longest_whatever_the_machine_is_like() {
    for name in NAMES {
        let (law, mut random) = (law(name), Random::new(1));
        let longest = longest_ms(name) * MILLISECOND;
        assert_eq!(law.pause_ns_max(), longest, "{name} says so itself");
        let mut memory = [law.new_payer(), law.new_device(&Default::default()), law.new_shared()];
        let (mut now_ms, mut seen) = (0, 0);
        for _ in 0..2_000 {
            now_ms += random.below(400);
            for (view, decision) in call(&*law, &mut memory, &mut || view(&mut random, now_ms)) {
                if let Admission::EnterAfter(pause) | Admission::Pause(pause) = decision {
                    assert!(pause.ns <= longest, "{name}: {pause:?} from {view:?}");
                    seen = seen.max(pause.ns);
                }
            }
        }
        assert_eq!(seen, longest, "{name}: and that long it gets");
    }
}

#[test]
fn since_position_control_a_device_with_little_dirty_has_short_pauses() {
    for name in ["linux-3.6", "linux-6.1"] {
        let (law, mut random, mut seen) = (law(name), Random::new(2), 0);
        for _ in 0..2_000 {
            // Before the first update of the estimates: a bandwidth of 25,600 pages/s.
            let mut memory = [law.new_payer(), law.new_device(&Default::default()), law.new_shared()];
            for (view, decision) in call(&*law, &mut memory, &mut || view(&mut random, 100)) {
                let (Admission::EnterAfter(pause) | Admission::Pause(pause)) = decision else { continue };
                let device_dirty = view.device().reclaimable + view.device().writeback;
                // max_pause by hand: pow2ceil(1 + HZ / 8) is 128, 25,600 / 128 is 200.
                let most = (device_dirty / (1 + 200) + 1).min(200) + longest_ms(name) - 200;
                assert!(pause.ns <= most * MILLISECOND, "{name}: {pause:?} with {device_dirty} pages");
                seen += 1;
            }
        }
        assert!(seen > 500, "{name}: {seen} pauses");
    }
}
