use super::*;

fn bytes(version: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    pattern(version, offset, &mut bytes);
    bytes
}

#[test]
fn a_pattern_depends_on_version_and_place_alone() {
    assert_eq!(bytes(3, 100, 50), bytes(3, 90, 60)[10..]);
    assert_ne!(bytes(3, 100, 8), bytes(4, 100, 8));
    assert_ne!(bytes(3, 100, 8), bytes(3, 108, 8));
    assert_eq!(bytes(0, 5, 9), [0; 9]);
}

#[test]
fn a_finished_write_hides_what_was_before() {
    let mut model = FileModel::new(1000, 1);
    let write = model.begin_write(100, 200, 2);
    model.end(write, Ending::Done);
    let look = model.look();
    let mut right = bytes(1, 0, 1000);
    pattern(2, 100, &mut right[100..300]);
    model.check_read(look, 0, 2000, &right).unwrap();
    let mut wrong = right.clone();
    pattern(1, 299, &mut wrong[299..300]);
    let error = model.check_read(look, 0, 2000, &wrong).unwrap_err();
    assert!(error.what.starts_with("byte 299 (and 0 more") && error.what.contains("version 1;"), "{error}");
}

#[test]
fn overlapping_changes_may_end_in_either_order() {
    let mut model = FileModel::new(0, 0);
    let first = model.begin_write(0, 16, 1);
    let second = model.begin_write(0, 16, 2);
    model.end(first, Ending::Done);
    model.end(second, Ending::Done);
    let look = model.look();
    model.check_read(look, 0, 16, &bytes(1, 0, 16)).unwrap();
    model.check_read(look, 0, 16, &bytes(2, 0, 16)).unwrap();
    model.check_read(look, 0, 16, &[0; 16]).unwrap_err();
    let third = model.begin_write(0, 16, 3);
    let during = model.look();
    model.check_read(during, 0, 16, &bytes(1, 0, 16)).unwrap();
    model.check_read(during, 0, 16, &bytes(3, 0, 16)).unwrap();
    model.end(third, Ending::Done);
    let after = model.look();
    model.check_read(after, 0, 16, &bytes(1, 0, 16)).unwrap_err();
    // A look that began before the third write ended may still have seen the others.
    model.check_read(during, 0, 16, &bytes(1, 0, 16)).unwrap();
}

#[test]
fn a_failed_write_may_or_may_not_have_happened() {
    let mut model = FileModel::new(8192, 1);
    let write = model.begin_write(4096, 8192, 2);
    model.end(write, Ending::Failed);
    let look = model.look();
    assert_eq!(model.sizes_since(look), Some([8192, 12288].into()));
    let mut mixed = bytes(1, 0, 8192);
    pattern(2, 4096, &mut mixed[4096..4100]);
    model.check_read(look, 0, 8192, &mixed).unwrap();
    let write = model.begin_write(0, 8192, 3);
    model.end(write, Ending::Done);
    let look = model.look();
    model.check_read(look, 0, 8192, &mixed).unwrap_err();
}

#[test]
fn an_abandoned_truncation_may_still_happen() {
    let mut model = FileModel::new(1000, 1);
    let cut = model.begin_set_size(10);
    model.end(cut, Ending::Abandoned);
    let write = model.begin_write(0, 1000, 2);
    model.end(write, Ending::Done);
    let look = model.look();
    assert_eq!(model.sizes_since(look), Some([10, 1000].into()));
    model.check_read(look, 0, 1000, &bytes(2, 0, 10)).unwrap();
    model.check_read(look, 0, 1000, &bytes(2, 0, 1000)).unwrap();
}

#[test]
fn a_truncation_zeroes_what_a_later_growth_shows() {
    let mut model = FileModel::new(1000, 1);
    for size in [100, 1000] {
        let change = model.begin_set_size(size);
        model.end(change, Ending::Done);
    }
    let look = model.look();
    let mut right = vec![0; 1000];
    pattern(1, 0, &mut right[..100]);
    model.check_read(look, 0, 1000, &right).unwrap();
    model.check_read(look, 0, 1000, &bytes(1, 0, 1000)).unwrap_err();
    model.check_size(look, 1000).unwrap();
    model.check_size(look, 100).unwrap_err();
}

#[test]
fn what_was_synced_survives_and_the_rest_is_old_or_new() {
    let mut model = FileModel::new(0, 0);
    let write = model.begin_write(0, 1024, 1);
    model.end(write, Ending::Done);
    let look = model.look();
    model.note_synced(look, 0, 512);
    let write = model.begin_write(0, 512, 2);
    model.end(write, Ending::Done);
    for first in [1, 2] {
        for second in [0, 1] {
            let mut disk = bytes(first, 0, 1024);
            pattern(second, 512, &mut disk[512..]);
            model.check_crashed(0, &disk).unwrap();
        }
    }
    model.check_crashed(0, &[0; 512]).unwrap_err();
    model.check_crashed_size(0).unwrap();
    model.note_synced(look, 0, u64::MAX);
    model.check_crashed_size(0).unwrap_err();
    model.check_crashed_size(1024).unwrap();
}

#[test]
fn a_write_that_was_durable_at_its_end_may_have_been_synced_while_others_wrote() {
    let mut model = FileModel::new(512, 1);
    let stable = model.begin_write(0, 512, 2);
    // Each of these writes happens after the stable write, and the last one after its sync.
    for version in [3, 4] {
        let beside = model.begin_write(0, 512, version);
        model.end(beside, Ending::Done);
    }
    model.end(stable, Ending::Done);
    model.note_stable(stable);
    for version in [2, 3, 4] {
        model.check_crashed(0, &bytes(version, 0, 512)).unwrap();
    }
    model.check_crashed(0, &bytes(1, 0, 512)).unwrap_err();
    let look = model.look();
    model.check_bytes(look, 0, &bytes(3, 0, 512)).expect_err("whoever reads sees the last of those in order");
    model.note_synced(look, 0, 512);
    model.check_crashed(0, &bytes(3, 0, 512)).expect_err("and so does a sync that begins after them");
}

/// The states by definition: every change has had its effect or not, in every order.
struct EveryOrder {
    states: BTreeSet<(u64, BTreeSet<usize>)>,
    under_way: Vec<(usize, Option<u64>, u64)>,
    seen: BTreeSet<u64>,
}

impl EveryOrder {
    fn close(&mut self) {
        loop {
            let mut more = Vec::new();
            for (size, had) in &self.states {
                for (change, set, end) in self.under_way.iter().filter(|change| !had.contains(&change.0)) {
                    let mut had = had.clone();
                    had.insert(*change);
                    more.push((set.unwrap_or((*size).max(*end)), had));
                }
            }
            let before = self.states.len();
            self.states.extend(more);
            if self.states.len() == before {
                self.seen.extend(self.states.iter().map(|state| state.0));
                return;
            }
        }
    }

    fn end(&mut self, change: usize, ending: Ending) {
        if ending != Ending::Abandoned {
            self.states.retain(|(_, had)| ending == Ending::Failed || had.contains(&change));
            self.states = self
                .states
                .iter()
                .cloned()
                .map(|(size, mut had)| {
                    (size, {
                        had.remove(&change);
                        had
                    })
                })
                .collect();
            self.under_way.retain(|own| own.0 != change);
        }
    }
}

#[test]
fn the_sizes_are_those_of_every_order() {
    for seed in 0..400 {
        let mut random = afflux_simulator::Random::new(seed);
        let mut sizes = crate::size::Sizes::new(20);
        let mut every =
            EveryOrder { states: [(20, BTreeSet::new())].into(), under_way: Vec::new(), seen: BTreeSet::new() };
        let mut going: Vec<usize> = Vec::new();
        for change in 0..14 {
            let now = Stamp(change as u64 + 1);
            if going.len() < 5 && random.chance(600) {
                let (is_set, to) = (random.chance(350), random.between(1, 6) * 10);
                if is_set {
                    sizes.begin_set(change, to, now)
                } else {
                    sizes.begin_write(change, 0, to, now)
                }
                every.under_way.push((change, is_set.then_some(to), to));
                every.close();
                going.push(change);
            } else if !going.is_empty() {
                let change = going.swap_remove(random.below(going.len() as u64) as usize);
                let ending = random.pick(&[Ending::Done, Ending::Done, Ending::Failed, Ending::Abandoned]);
                sizes.end(change, ending, now);
                every.end(change, ending);
            }
            let current: BTreeSet<u64> = every.states.iter().map(|state| state.0).collect();
            assert_eq!(sizes.since(now), Some(current), "seed {seed}, step {change}");
        }
    }
}

#[test]
fn a_size_that_a_write_made_ends_in_what_was_written() {
    let mut model = FileModel::new(1000, 1);
    let (cut, write) = (model.begin_set_size(500), model.begin_write(2000, 100, 2));
    model.end(cut, Ending::Done);
    model.end(write, Ending::Done);
    let written = bytes(2, 2099, 1)[0];
    model.check_last(2100, written).unwrap();
    model.check_last(2100, written ^ 1).unwrap_err();
    model.check_last(500, 7).expect("a cut made it; its bytes are checked elsewhere");
    let punch = model.begin_punch(0, 4096);
    model.end(punch, Ending::Done);
    model.check_last(2100, 0).unwrap();
}

#[test]
fn many_changes_that_lost_their_callers_are_followed_and_too_many_others_are_not_judged() {
    let mut model = FileModel::new(1000, 1);
    for size in 0..40 {
        let cut = model.begin_set_size(100 * size);
        model.end(cut, Ending::Abandoned);
    }
    let look = model.look();
    assert_eq!(model.sizes_since(look), Some((0..40).map(|size| 100 * size).collect()));
    for write in 0..20 {
        let _ = model.begin_write(5000 + 4096 * write, 1, 2);
        let _ = model.begin_set_size(write);
    }
    model.check_size(look, 77).expect("nobody knows");
}

/// Callers that a hung disk refuses leave changes behind, as many as they like.
#[test]
fn equal_changes_without_callers_are_one() {
    let mut sizes = crate::size::Sizes::new(20);
    let possible =
        |sizes: &crate::size::Sizes| sizes.since(Stamp(1_000)).map(|sizes| sizes.into_iter().collect::<Vec<_>>());
    for change in 0..200 {
        sizes.begin_set(change, 5 + change as u64 % 2, Stamp(change as u64));
        sizes.end(change, Ending::Abandoned, Stamp(change as u64));
    }
    assert_eq!(possible(&sizes), Some(vec![5, 6, 20]));
    sizes.begin_set(200, 7, Stamp(300));
    sizes.end(200, Ending::Done, Stamp(301));
    assert_eq!(possible(&sizes), Some(vec![5, 6, 7]), "each of the two may still come");
    for change in 300..370 {
        sizes.begin_set(change, change as u64, Stamp(change as u64));
    }
    assert_eq!(possible(&sizes), None, "too many changes to follow");
}
