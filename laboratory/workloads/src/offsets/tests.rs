use super::*;
use crate::fio::job_of;
use crate::shares::shares;

/// The first `count` offsets in a job's only file.
fn spans(options: &str, direction: Direction, count: usize) -> Vec<(u64, u64)> {
    let job = job_of(options);
    let mut random = Random::new(7);
    let share = shares(&job, 0, &[None], &mut random)[0];
    let rules = Rules::of(&job);
    let mut spans = Offsets::new(&job, &rules, &share, &mut random);
    std::iter::from_fn(|| spans.next(&rules, direction, &mut random)).take(count).collect()
}

fn offsets(options: &str, count: usize) -> Vec<u64> {
    spans(options, Direction::Read, count).iter().map(|place| place.0 / 4096).collect()
}

#[test]
fn strides_go_backwards_and_over_holes() {
    assert_eq!(offsets("rw=read:-8k size=20k", 5), [0, 3, 2, 1, 0]);
    assert_eq!(offsets("rw=read:4k size=32k", 4), [0, 2, 4, 6]);
    assert_eq!(offsets("rw=read:8k size=32k", 8), [0, 3, 6, 0, 3, 6, 0, 3]);
}

#[test]
fn one_call_in_so_many_is_random() {
    let seen = offsets("rw=randread:4 size=64m norandommap", 400);
    let follows = seen.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!((280..=310).contains(&follows), "{follows} of 399 follow the one before");
    let seen = offsets("rw=randread:4 rw_sequencer=identical size=64m norandommap", 400);
    let same = seen.windows(2).filter(|pair| pair[1] == pair[0]).count();
    assert!((280..=310).contains(&same), "{same} of 399 are where the one before was");
    let seen = offsets("rw=randread percentage_random=20 size=64m norandommap", 1000);
    let follows = seen.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
    assert!((740..=860).contains(&follows), "{follows} of 999 follow the one before");
}

#[test]
fn lengths_come_as_often_as_listed() {
    let seen = spans("rw=read bssplit=4k/10:8k/60:64k/30 size=1g", Direction::Read, 2000);
    let share = |bytes: u64| seen.iter().filter(|place| place.1 == bytes).count() / 20;
    assert!((7..=13).contains(&share(4096)) && (55..=65).contains(&share(8192)), "{} {}", share(4096), share(8192));
    assert!(seen.iter().all(|place| [4096, 8192, 65536].contains(&place.1)));
    let seen = spans("rw=read bssplit=4k/50:64k/50 size=100k", Direction::Read, 100);
    assert_eq!(seen.iter().map(|place| place.1).sum::<u64>(), 100 << 10, "what has no room is drawn again");
    let both =
        spans("rw=randread bs=4k,64k bs_is_seq_rand=1 percentage_random=50 size=64m norandommap", Direction::Read, 50);
    assert!(both.iter().any(|place| place.1 == 4096) && both.iter().any(|place| place.1 == 65536));
}

#[test]
fn random_places_may_be_anywhere_and_have_their_favourites() {
    let seen = spans("rw=randread bs=4k blockalign=512 size=1m", Direction::Read, 2000);
    assert!(seen.iter().all(|place| place.0 % 512 == 0 && place.0 + place.1 <= 1 << 20));
    assert!(seen.iter().any(|place| place.0 % 4096 != 0));
    // Of 100 calls, 50 go to the first 5 of 100 blocks, and 30 to the next 15.
    let seen = offsets("rw=randread size=400k random_distribution=zoned:50/5:30/15:20/", 2000);
    let part = |from: u64, to: u64| seen.iter().filter(|block| (from..to).contains(block)).count() / 20;
    assert!((45..=55).contains(&part(0, 5)) && (25..=35).contains(&part(5, 20)), "{} {}", part(0, 5), part(5, 20));
    let seen = offsets("rw=randread size=400k random_distribution=zoned_abs:90/40k:10/360k", 2000);
    assert!((86..=94).contains(&(seen.iter().filter(|block| **block < 10).count() / 20)));
    let seen = offsets("rw=randread size=4000k random_distribution=normal:10", 2000);
    let near = seen.iter().filter(|block| (400..600).contains(*block)).count() / 20;
    assert!((62..=74).contains(&near), "{near} percent are within one deviation");
    let seen = offsets("rw=randread size=4000k random_distribution=pareto:0.2", 5000);
    let mut counts = std::collections::BTreeMap::new();
    seen.iter().for_each(|block| *counts.entry(block).or_insert(0_u64) += 1);
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let most: u64 = counts.iter().take(200).sum();
    assert!((72..=88).contains(&(most / 50)), "{} percent to a fifth of the blocks", most / 50);
}

#[test]
fn zones_are_gone_through_one_after_the_other() {
    let seen = offsets("rw=read size=128k zonemode=strided zonesize=8k zonerange=8k zoneskip=8k", 20);
    assert_eq!(seen[..6], [0, 1, 4, 5, 8, 9]);
    let seen = offsets("rw=read size=64k zonemode=strided zonesize=16k zonerange=8k", 8);
    assert_eq!(seen, [0, 1, 0, 1, 2, 3, 2, 3], "again in the range until so much is done");
}

#[test]
fn zones_of_zoned_disks_are_written_in_sequence() {
    let seen =
        spans("rw=randwrite norandommap size=1m zonemode=zbd zonesize=64k max_open_zones=3", Direction::Write, 500);
    let mut next = [0_u64; 16];
    let mut open: Vec<u64> = Vec::new();
    for (offset, len) in seen {
        let (zone, at) = (offset / 65536, offset % 65536);
        assert_eq!(at, next[zone as usize] % 65536, "where the zone was written to");
        next[zone as usize] = at + len;
        if !open.contains(&zone) {
            open.push(zone);
        }
        assert!(open.len() <= 3, "{open:?}");
        if at + len == 65536 {
            open.retain(|other| *other != zone);
        }
    }
}
