use super::*;
use crate::vmstat::{BdiStat, Reads, VmStat};

fn reads(global: u64, dirty: u64, device: u64) -> Reads {
    Reads { global, dirty, device, absent: 0 }
}

const ALL: [Form; 8] =
    [Form::Rc1, Form::Final, Form::July, Form::Seed, Form::August, Form::September, Form::Merged, Form::V2_6_32];

/// Pages that a CPU's writers may dirty between calls.
const RATELIMIT: u64 = 1024;

/// A machine whose limits are 20,000 and 10,000 pages, and one device that has all completions.
struct DeviceState {
    law: Balance,
    dirties: Local,
    completions: Local,
    vm_dirties: Global,
    vm_completions: Global,
    marks: Marks,
    max_ratio: u64,
    call: Call,
}

impl DeviceState {
    fn new(form: Form) -> Self {
        let (mut completions, mut vm_completions) = (Local::default(), Global::default());
        for _ in 0..100 {
            vm_completions.add(&mut completions, 10_000, prop::WHOLE, shift_for(20_000));
        }
        Self {
            law: Balance::new(form),
            dirties: Local::default(),
            completions,
            vm_dirties: Global::default(),
            vm_completions,
            marks: Marks::default(),
            max_ratio: 100,
            call: Call::default(),
        }
    }

    fn view(&self, dirty: u64, writeback: u64) -> View {
        View {
            vm: VmStat { free: 0, inactive_file: 99_999, dirty, writeback },
            bdi: BdiStat { reclaimable: dirty, writeback },
            sysctl: Sysctl { max_ratio: self.max_ratio, ..Sysctl::default() },
            ..View::default()
        }
    }

    fn fractions(&mut self) -> (Balance, Fractions<'_>, &mut Call, &mut Marks) {
        let Self { law, dirties, completions, vm_dirties, vm_completions, call, marks, .. } = self;
        (*law, Fractions { vm_completions, vm_dirties, completions, dirties }, call, marks)
    }

    fn decide(&mut self, view: &View) -> Step {
        self.marks.start_background = false;
        let (law, mut of, call, marks) = self.fractions();
        let step = law.step(view, RATELIMIT, &mut *call, marks, &mut of);
        call.pass += 1;
        step
    }

    /// One call with this many dirty pages, of which each `WriteBack` writes its part; returns the sum of the reads.
    fn call(&mut self, dirty: u64) -> (Reads, Vec<Step>) {
        self.call = Call::default();
        let (mut dirty, mut writeback) = (dirty, 0);
        let (mut reads, mut decisions) = (Reads::default(), Vec::new());
        for _ in 0..10 {
            let view = self.view(dirty, writeback);
            let decision = self.decide(&view);
            reads.add(Reads { absent: 0, ..view.reads.get() });
            decisions.push(decision);
            match decision {
                Step::Return => return (reads, decisions),
                Step::WriteBack(pages) => {
                    self.call.written += pages;
                    self.call.written_last = pages;
                    (dirty, writeback) = (dirty - pages, writeback + pages);
                }
                Step::CongestionWait(_) | Step::Sleep(_) => (dirty, writeback) = (dirty.saturating_sub(writeback), 0),
            }
        }
        panic!("{:?} does not end: {decisions:?}", self.law.form)
    }
}

#[test]
fn reads_of_a_call_that_is_not_throttled_by_table() {
    for form in ALL {
        let expected = match form {
            Form::Rc1 | Form::Final | Form::V2_6_32 => reads(14, 9, 4),
            Form::Merged => reads(8, 3, 0),
            _ => reads(9, 4, 2),
        };
        let (reads, decisions) = DeviceState::new(form).call(5000);
        assert_eq!((reads, decisions), (expected, vec![Step::Return]), "{form:?}");
    }
}

#[test]
fn reads_of_a_call_that_writes_once_by_table() {
    for form in ALL {
        let expected = match form {
            // 2 x 9 + 3, and 2 at the end.
            Form::Rc1 | Form::Final | Form::V2_6_32 => reads(23, 13, 8),
            Form::July | Form::Seed => reads(9, 4, 2),
            // As posted, the loop begins again: two passes with the same reads.
            Form::August | Form::September => reads(18, 8, 4),
            Form::Merged => reads(8, 3, 2),
        };
        // The device may have half of the limit; all devices together are below the limit.
        let mut state = DeviceState::new(form);
        state.max_ratio = 50;
        let (reads, decisions) = state.call(19_000);
        assert_eq!(decisions, [Step::WriteBack(1536), Step::Return], "{form:?}");
        assert_eq!(reads, expected, "{form:?}");
        assert!(state.marks.dirty_exceeded, "{form:?}: still over");
    }
}

#[test]
fn over_the_limit_of_all_a_chunk_lets_go_in_all_forms_but_augusts() {
    for form in ALL {
        let mut state = DeviceState::new(form);
        let (_, decisions) = state.call(25_000);
        let chunk_lets_go = decisions == [Step::WriteBack(1536), Step::Return];
        assert_eq!(chunk_lets_go, form != Form::August, "{form:?}: {decisions:?}");
    }
}

#[test]
fn without_its_own_test_a_device_has_the_whole_limit() {
    for (form, held_at) in [(Form::August, 20_000), (Form::September, 20_000), (Form::Merged, 20_000)] {
        for (dirty, waits) in [(held_at - 1, false), (held_at, true)] {
            let mut state = DeviceState::new(form);
            state.law = Balance::new(form).changed(&[(Part::DeviceTest, false)]);
            let view = state.view(dirty, 0);
            let decision = state.decide(&view);
            assert_eq!(
                matches!(decision, Step::CongestionWait(_) | Step::Sleep(_)),
                waits,
                "{form:?} {dirty}: {decision:?}"
            );
            assert_eq!(view.reads.get().device, 0, "{form:?}");
        }
    }
}

/// The smallest dirty count that stops the writer. All pages are on its device, and it did all the dirtying.
fn held_from(changes: &[(Part, bool)]) -> u64 {
    let lets_go = |dirty: u64| {
        let mut state = DeviceState::new(Form::Final);
        state.law = Balance::new(Form::Final).changed(changes);
        let DeviceState { vm_completions, completions, vm_dirties, dirties, .. } = &mut state;
        (*vm_completions, *completions) = (Global::default(), Local::default());
        // The steps end at the ends of periods, so that fractions are 1 to within a page.
        for _ in 0..1 << 12 {
            vm_completions.add(completions, 1 << 10, prop::WHOLE, shift_for(20_000));
            vm_dirties.add(dirties, 1 << 10, prop::WHOLE, shift_for(20_000));
        }
        let view = state.view(dirty, 0);
        state.decide(&view) == Step::Return
    };
    let (mut below, mut held) = (15_000, 30_000);
    while held - below > 1 {
        let middle = (below + held) / 2;
        if lets_go(middle) { below = middle } else { held = middle }
    }
    held
}

#[test]
fn of_all_parts_only_the_writers_eighth_holds_a_lone_writer_below_the_limit() {
    // All completions and all dirtying lately: the whole limit of 20,000, and seven eighths of it.
    assert_eq!(held_from(&[(Part::TaskShare, false)]), 20_000);
    let as_it_is = held_from(&[]);
    assert_eq!(as_it_is, 17_502);
    for part in [Part::Clip, Part::LookAfterWriting, Part::Flag, Part::TailReads, Part::QuietWhileFlushing] {
        assert_eq!(held_from(&[(part, false)]), as_it_is, "{part:?}");
    }
}

#[test]
fn only_rc1_writes_when_what_is_dirty_is_below_the_share() {
    for form in ALL {
        // 1,000 dirty and 24,000 under writeback.
        let mut state = DeviceState::new(form);
        let view = state.view(1000, 24_000);
        let decision = state.decide(&view);
        match (form, decision) {
            (Form::Rc1, Step::WriteBack(1536)) => {}
            (Form::V2_6_32, Step::Sleep(ns)) => assert_eq!(ns, 1_000_000),
            (_, Step::CongestionWait(ns)) => {
                assert_ne!(form, Form::Rc1);
                assert_eq!(ns, 100_000_000);
            }
            _ => panic!("{form:?}: {decision:?}"),
        }
    }
}

#[test]
fn in_2_6_32_sleeps_double_up_to_100_ms() {
    let mut state = DeviceState::new(Form::V2_6_32);
    let mut slept = Vec::new();
    for _ in 0..9 {
        let view = state.view(1000, 24_000);
        let Step::Sleep(ns) = state.decide(&view) else { panic!("it waits") };
        slept.push(ns / 1_000_000);
    }
    assert_eq!(slept, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
}

#[test]
fn a_lone_writer_gets_less_of_the_limit_before_the_patch() {
    // Dirty pages of others reduce the headroom, and the clip reduces the share to it; all forms subtract the writer's
    // own eighth.
    let clipped = |form| {
        let mut state = DeviceState::new(form);
        let mut view = state.view(0, 0);
        // The device has 4,000; all together 21,000.
        (view.vm.dirty, view.bdi.reclaimable) = (21_000, 4000);
        let (law, mut of, ..) = state.fractions();
        law.look(&view, &mut of).share
    };
    assert_eq!(clipped(Form::Final), 4000);
    assert!(clipped(Form::Seed) > 15_000);
}

#[test]
fn a_writer_that_dirtied_everything_has_an_eighth_less() {
    let mut state = DeviceState::new(Form::Final);
    for _ in 0..200 {
        state.vm_dirties.add(&mut state.dirties, 1000, prop::WHOLE, shift_for(20_000));
    }
    let share_of_task = |state: &mut DeviceState| Balance::share_of_task(16_000, 20_000, &mut state.fractions().1);
    let share = share_of_task(&mut state);
    assert!((14_000..=14_100).contains(&share), "{share}");
    state.dirties = Local::default();
    assert_eq!(share_of_task(&mut state), 16_000);
}

#[test]
fn where_the_flag_is_cleared() {
    for form in ALL {
        // Above the flag's condition before; now at half the share and half the midpoint.
        let mut state = DeviceState::new(form);
        state.marks.dirty_exceeded = true;
        state.call(5000);
        assert!(!state.marks.dirty_exceeded, "{form:?}: below the share everywhere clears it");
    }
    // Below the midpoint of all devices but over its share: a form keeps the flag only if it tests the midpoint
    // separately.
    for (form, stays) in
        [(Form::Final, true), (Form::July, true), (Form::Seed, true), (Form::September, true), (Form::Merged, false)]
    {
        let mut state = DeviceState::new(form);
        state.marks.dirty_exceeded = true;
        let mut view = state.view(14_000, 0);
        view.sysctl.max_ratio = 10;
        assert_eq!(state.decide(&view), Step::Return, "{form:?}");
        assert_eq!(state.marks.dirty_exceeded, stays, "{form:?}");
    }
}

#[test]
fn july_leaves_the_flag_after_a_chunk_and_the_seed_does_not() {
    // 20,100 pages are dirty. The chunk takes the device below its share, but only another look shows that.
    for (form, stays) in [(Form::Final, false), (Form::July, true)] {
        let mut state = DeviceState::new(form);
        let view = state.view(20_100, 0);
        assert!(matches!(state.decide(&view), Step::WriteBack(_)));
        state.call.written = 1536;
        let view = state.view(5000, 1000);
        assert_eq!(state.decide(&view), Step::Return);
        assert_eq!(state.marks.dirty_exceeded, stays, "{form:?}");
    }
}

#[test]
fn august_waits_over_the_limit_of_all_even_below_the_share() {
    for (form, waits) in [(Form::Seed, false), (Form::August, true), (Form::September, true)] {
        let mut state = DeviceState::new(form);
        let mut view = state.view(0, 0);
        (view.vm.dirty, view.bdi.reclaimable) = (21_000, 100);
        let decision = state.decide(&view);
        assert_eq!(matches!(decision, Step::CongestionWait(_) | Step::Sleep(_)), waits, "{form:?}: {decision:?}");
    }
}

#[test]
fn the_way_out_asks_for_background_unless_it_runs() {
    for form in ALL {
        for (dirty, asked) in [(10_000, false), (10_001, true)] {
            let mut state = DeviceState::new(form);
            let view = state.view(dirty, 0);
            state.decide(&view);
            assert_eq!(state.marks.start_background, asked, "{form:?} {dirty}");
        }
    }
}

#[test]
fn the_pace_by_table() {
    for (memory, cpus, pages) in [(100, 1, 16), (1024, 1, 32), (786_432, 2, 1024), (16_384, 2, 256)] {
        assert_eq!((ratelimit_pages(memory, cpus, false), ratelimit_pages(memory, cpus, true)), (pages, 8));
    }
}
