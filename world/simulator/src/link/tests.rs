use std::sync::atomic::{AtomicU64, Ordering};

use afflux_engine::{Nanos, Platform};
use bytes::Bytes;

use super::*;
use crate::world::{RunError, SimPlatform, WorldOptions};

const MS: u64 = Nanos::MILLISECOND;

/// A world in which steps take no time, and a link of 8 Mbit/s: a byte a microsecond, packets of 1,000 bytes
/// without overhead, 5 ms in each direction.
fn bench(seed: u64, change: impl FnOnce(&mut LinkOptions)) -> (World, Link) {
    let world = World::new(WorldOptions { step_ns: 0, ..WorldOptions::seed(seed) });
    let mut options = LinkOptions {
        bits_per_second: 8_000_000,
        delay_ns: 5 * MS,
        packet_bytes: 1_000,
        overhead_bytes: 0,
        retransmit_ns: 200 * MS,
        window_bytes: 1 << 30,
        ..LinkOptions::default()
    };
    change(&mut options);
    let link = Link::new(&world, 0, options);
    (world, link)
}

fn zeros(len: usize) -> Bytes {
    Bytes::from(vec![0; len])
}

/// Sends pieces from one end as fast as possible and returns the time of each one's arrival at the other.
fn arrivals(world: &World, link: &Link, pieces: &[usize]) -> Vec<u64> {
    let (near, far) = link.connect();
    let pieces: Vec<Bytes> = pieces.iter().map(|len| zeros(*len)).collect();
    world.spawn("sender", async move {
        for piece in pieces {
            near.send(piece).await.unwrap();
        }
    });
    let platform = Arc::clone(world.platform());
    world
        .run(async move {
            let mut times = Vec::new();
            while far.receive().await.is_some() {
                times.push(platform.now().0);
            }
            times
        })
        .unwrap()
}

async fn sleep(platform: &SimPlatform, until_ns: u64) {
    platform.sleep_until(Nanos(until_ns)).await;
}

#[test]
fn a_transfer_takes_its_bytes_at_the_rate_and_the_delay() {
    let (world, link) = bench(1, |_| {});
    let expected = [6 * MS, 7 * MS, 10 * MS, 10 * MS + MS / 2];
    assert_eq!(arrivals(&world, &link, &[1_000, 1_000, 3_000, 500]), expected);
    assert_eq!(link.figures().0, LinkFigures { bytes: 5_500, lost_packets: 0 });
    assert_eq!(link.figures().1, LinkFigures::default());
}

#[test]
fn every_packet_costs_its_overhead_and_pieces_that_follow_share_packets() {
    let with_overhead = |link: &mut LinkOptions| link.overhead_bytes = 100;
    // 11 packets of 1,100 bytes, for 10,500 of payload.
    let (world, link) = bench(1, with_overhead);
    assert_eq!(arrivals(&world, &link, &[10_500]), [5 * MS + 11_600_000]);
    // The same bytes in pieces need no more packets.
    let (world, link) = bench(1, with_overhead);
    assert_eq!(arrivals(&world, &link, &[700; 15]).last(), Some(&(5 * MS + 11_600_000)));
    // After a pause the last packet's free bytes are gone.
    let (world, link) = bench(1, with_overhead);
    assert_eq!(arrivals(&world, &link, &[700]), [5 * MS + 800_000]);
    let start = world.platform().now().0;
    assert_eq!(arrivals(&world, &link, &[200]), [start + 5 * MS + 300_000]);
}

#[test]
fn fractions_of_nanoseconds_add_up() {
    // 3 bytes a second: a byte takes 333,333,333.3 ns.
    let (world, link) = bench(1, |link| (link.bits_per_second, link.delay_ns) = (24, 0));
    assert_eq!(arrivals(&world, &link, &[1; 9]).last(), Some(&(3 * Nanos::SECOND)));
}

#[test]
fn a_stream_is_as_fast_as_its_window_in_a_round_trip() {
    // 2,000 bytes leave in 2 ms, arrive after 5 more, and free the window after 5 more.
    let (world, link) = bench(1, |link| link.window_bytes = 2_000);
    let times = arrivals(&world, &link, &[2_000; 50]);
    let expected: Vec<u64> = (0..50).map(|at| 7 * MS + at * 12 * MS).collect();
    assert_eq!(times, expected);
    // A window of the bandwidth-delay product, 12 ms here, keeps the link busy; one piece less does not.
    for (pieces, busy) in [(12, true), (11, false)] {
        let (world, link) = bench(1, |link| link.window_bytes = pieces * 1_000 - 1_000);
        let times = arrivals(&world, &link, &[1_000; 120]);
        assert_eq!(times[119] == 125 * MS, busy, "{pieces} pieces: {}", times[119]);
    }
}

#[test]
fn who_does_not_read_stops_who_writes() {
    let (world, link) = bench(1, |link| link.window_bytes = 10_000);
    let (near, far) = link.connect();
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    world.spawn("sender", async move {
        while near.send(zeros(1_000)).await.is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    let platform = Arc::clone(world.platform());
    let (at_rest, after) = world
        .run(async move {
            sleep(&platform, 1_000 * MS).await;
            let at_rest = sent.load(Ordering::Relaxed);
            for _ in 0..3 {
                far.receive().await;
            }
            sleep(&platform, 2_000 * MS).await;
            (at_rest, sent.load(Ordering::Relaxed))
        })
        .unwrap();
    assert_eq!((at_rest, after), (10, 13));
    // A piece larger than the window passes alone.
    let (world, link) = bench(1, |link| link.window_bytes = 10);
    assert_eq!(arrivals(&world, &link, &[5_000, 1_000]), [10 * MS, 21 * MS]);
}

#[test]
fn directions_are_apart_and_streams_share() {
    let (world, link) = bench(1, |_| {});
    let ends = [link.connect(), link.connect()];
    let platform = Arc::clone(world.platform());
    let times = world
        .run(async move {
            let [(near, far), (other_near, other_far)] = ends;
            near.send(zeros(4_000)).await.unwrap();
            other_near.send(zeros(1_000)).await.unwrap();
            far.send(zeros(2_000)).await.unwrap();
            let mut times = Vec::new();
            for end in [&near, &far, &other_far] {
                end.receive().await.unwrap();
                times.push(platform.now().0);
            }
            times
        })
        .unwrap();
    assert_eq!(times, [7 * MS, 9 * MS, 10 * MS]);
}

#[test]
fn a_lost_packet_comes_later_and_holds_up_what_is_behind_it() {
    let mut late = 0;
    for seed in 0..200 {
        let (world, link) = bench(seed, |link| link.loss_per_million = 100_000);
        let times = arrivals(&world, &link, &[1_000, 1_000]);
        let lost = link.figures().0.lost_packets;
        // Each loss takes the packet's time on the link again, and the retransmission delay.
        let right: &[[u64; 2]] = match lost {
            0 => &[[6, 7]],
            // The second packet waits for the first, or is itself the lost one.
            1 => &[[206, 206], [206, 208], [6, 207], [6, 208]],
            _ => continue,
        };
        assert!(right.iter().any(|right| times == right.map(|ms| ms * MS)), "seed {seed}, {lost} lost: {times:?}");
        late += u64::from(lost == 1);
    }
    // Expected: exactly one of two packets is lost, at one in ten: 200 * 2 * 0.1 * 0.9^2 = 32.
    assert!((20..48).contains(&late), "{late} of 200");
}

#[test]
fn in_a_cut_nothing_arrives_and_then_everything_in_order() {
    // The first arrives before the cut, the second is in transit, the third is sent during the cut.
    for told_before in [true, false] {
        let (world, link) = bench(1, |_| {});
        let (near, far) = link.connect();
        let platform = Arc::clone(world.platform());
        if told_before {
            link.cut(10 * MS, 100 * MS);
        }
        world.spawn("sender", async move {
            near.send(zeros(3_000)).await.unwrap();
            near.send(zeros(3_000)).await.unwrap();
            if !told_before {
                sleep(&platform, 8 * MS).await;
                link.cut(10 * MS, 100 * MS);
            }
            sleep(&platform, 50 * MS).await;
            near.send(zeros(1_000)).await.unwrap();
        });
        let platform = Arc::clone(world.platform());
        let times = world
            .run(async move {
                let mut times = Vec::new();
                while far.receive().await.is_some() {
                    times.push(platform.now().0 / MS);
                }
                times
            })
            .unwrap();
        // The second is sent again 200 ms after the cut: as a whole, or only the bytes that had left already.
        let expected = if told_before { [8, 308, 309] } else { [8, 301, 306] };
        assert_eq!(times, expected, "{told_before}");
    }
}

#[test]
fn a_link_that_stays_cut_is_a_deadlock_with_names() {
    let (world, link) = bench(1, |_| {});
    link.cut(0, u64::MAX);
    let (near, far) = link.connect();
    world.spawn("sender", async move {
        near.send(zeros(1)).await.unwrap();
        near.receive().await;
    });
    let error = world.run(async move { far.receive().await }).unwrap_err();
    assert!(matches!(&error, RunError::Deadlock { waiting } if waiting.len() == 2), "{error}");
}

#[test]
fn an_end_that_is_dropped_is_told_after_what_it_sent() {
    let (world, link) = bench(1, |_| {});
    let (near, far) = link.connect();
    let result = world.run(async move {
        near.send(zeros(10)).await.unwrap();
        drop(near);
        assert_eq!(far.receive().await.map(|bytes| bytes.len()), Some(10));
        assert_eq!(far.receive().await, None);
        far.send(zeros(1)).await
    });
    assert_eq!(result.unwrap(), Err(Closed));
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let run = |seed| {
        let (world, link) = bench(seed, |link| link.loss_per_million = 200_000);
        let times = arrivals(&world, &link, &[1_500; 40]);
        (times, world.trace_hash())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
