//! The log's decisions in virtual time, over a database that takes each batch a millisecond late.

use std::sync::{Arc, Mutex};

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;

const ROUND_TRIP: Duration = Duration::from_millis(30);
const MS: Duration = Duration::from_millis(1);

/// A store whose log PUTs take some time each.
struct Store {
    demand: Sender<Demand>,
    durable: Sender<Sequence>,
    given: Mutex<u64>,
    puts: Mutex<u64>,
}

impl Store {
    /// Runs a test in virtual time, with the log beside it.
    fn run<T>(round_trip: impl Fn(u64) -> Duration, test: impl AsyncFnOnce(Arc<Self>) -> T) -> T {
        let (demand, durable) = (watch::channel(Demand::default()).0, watch::channel(Sequence(0)).0);
        let store = Arc::new(Self { demand, durable, given: Mutex::default(), puts: Mutex::default() });
        let put = || {
            let mut puts = store.puts.lock().unwrap();
            *puts += 1;
            let takes = round_trip(*puts);
            async move {
                sleep(takes).await;
                Ok(())
            }
        };
        let durable = |upto, _| _ = store.durable.send_replace(upto);
        Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(async {
            tokio::select! {
                _ = log(&store.demand, put, durable) => panic!("the log ends by itself"),
                result = test(Arc::clone(&store)) => result,
            }
        })
    }

    /// Gives a batch to the database, as the queue of batches does.
    fn apply(self: &Arc<Self>) -> Sequence {
        let mut given = self.given.lock().unwrap();
        *given += 1;
        let (store, sequence) = (Arc::clone(self), Sequence(*given));
        tokio::spawn(async move {
            sleep(MS).await;
            store.demand.send_modify(|demand| demand.written = demand.written.max(sequence));
        });
        sequence
    }

    async fn durable(&self, sequence: Sequence) {
        let _caller = BatchCaller::waits(&self.demand, sequence);
        self.durable.subscribe().wait_for(|durable| *durable >= sequence).await.unwrap();
    }

    /// The time of a COMMIT, which follows a batch that nobody waits for.
    async fn commit(self: &Arc<Self>) -> Duration {
        let begin = Instant::now();
        self.apply();
        sleep(MS / 2).await;
        self.durable(self.apply()).await;
        begin.elapsed()
    }

    fn puts(&self) -> u64 {
        *self.puts.lock().unwrap()
    }
}

/// Sorted times of the COMMITs of clients that think for 1 to 6 ms before each one.
async fn commits(store: &Arc<Store>, clients: u64, rounds: u64) -> Vec<Duration> {
    let mut all = JoinSet::new();
    for client in 0..clients {
        let store = Arc::clone(store);
        all.spawn(async move {
            let mut times = Vec::new();
            for round in 0..rounds {
                sleep(MS + MS * ((client * 7 + round * 5) % 6) as u32).await;
                times.push(store.commit().await);
            }
            times
        });
    }
    let mut times = all.join_all().await.concat();
    times.sort_unstable();
    times
}

// rule: A COMMIT of one client is one PUT and one round trip. An unwanted batch goes along.
#[test]
fn a_lone_commit_is_one_put_and_one_round_trip() {
    Store::run(
        |_| ROUND_TRIP,
        async |store| {
            let times = commits(&store, 1, 100).await;
            assert_eq!(store.puts(), 100);
            assert!(times[99] <= ROUND_TRIP + 3 * MS, "{:?}", times[99]);
        },
    );
}

// rule: COMMITs of many clients take one log PUT together, not one after the other.
#[test]
fn clients_do_not_take_turns() {
    Store::run(
        |_| ROUND_TRIP,
        async |store| {
            let times = commits(&store, 32, 100).await;
            let (middle, slow) = (times[times.len() / 2], times[times.len() * 99 / 100]);
            println!("32 clients: {middle:?} at the median, {slow:?} at 99 %, {} PUTs for 100 rounds", store.puts());
            assert!(middle <= ROUND_TRIP * 16 / 10, "{middle:?}");
            assert!(slow <= ROUND_TRIP * 25 / 10, "{slow:?}");
            assert!(store.puts() <= 105, "{}", store.puts());
        },
    );
}

/// The clients that shared a PUT are gone. The last one waits for them once, and not for long.
#[test]
fn a_client_waits_for_those_that_left_once() {
    Store::run(
        |_| ROUND_TRIP,
        async |store| {
            commits(&store, 32, 5).await;
            let first = store.commit().await;
            assert!(first <= ROUND_TRIP + ROUND_TRIP / LULL_PART + 3 * MS, "{first:?}");
            assert!(store.commit().await <= ROUND_TRIP + 3 * MS);
        },
    );
}

/// Callers that come one by one, and are too few, hold a PUT up for a part of its time.
#[test]
fn a_put_waits_for_half_of_the_last_ones_time_at_most() {
    Store::run(
        |_| ROUND_TRIP,
        async |store| {
            commits(&store, 32, 5).await;
            let others = Arc::clone(&store);
            tokio::spawn(async move {
                for _ in 0..20 {
                    let other = Arc::clone(&others);
                    tokio::spawn(async move { other.commit().await });
                    sleep(3 * MS).await;
                }
            });
            let first = store.commit().await;
            assert!(first > ROUND_TRIP + ROUND_TRIP / LULL_PART + 3 * MS, "others came: {first:?}");
            assert!(first <= ROUND_TRIP + ROUND_TRIP / GATHERED_PART + 3 * MS, "{first:?}");
        },
    );
}

#[test]
fn an_outage_makes_no_later_put_wait_as_long() {
    let outage = |put| if put == 1 { Duration::from_secs(60) } else { ROUND_TRIP };
    Store::run(outage, async |store| {
        commits(&store, 32, 1).await;
        let first = store.commit().await;
        assert!(first <= ROUND_TRIP + LONGEST / LULL_PART + 3 * MS, "{first:?}");
    });
}

#[test]
fn nobody_waits_for_others_on_a_quick_store() {
    let waited = |took| {
        Store::run(
            |_| took,
            async |store| {
                let begin = Instant::now();
                Gathering { expected: 2, took }.wait(&mut store.demand.subscribe()).await;
                begin.elapsed()
            },
        )
    };
    assert_eq!(waited(3 * MS), Duration::ZERO);
    assert!(waited(ROUND_TRIP) >= ROUND_TRIP / LULL_PART);
}

#[test]
fn a_caller_that_gave_up_is_not_waited_for() {
    Store::run(
        |_| ROUND_TRIP,
        async |store| {
            let caller = BatchCaller::waits(&store.demand, Sequence(9));
            let same = BatchCaller::waits(&store.demand, Sequence(9));
            assert_eq!(store.demand.borrow().callers(), 2);
            drop(caller);
            drop(same);
            assert_eq!(store.demand.borrow().callers(), 0);
        },
    );
}

// rule: batches gather on their way to the database only while nobody waits for them
// kept in: `product/object-store/src/records/log.rs`, `product/object-store/src/records/tasks.rs`
#[test]
fn a_batch_is_needed_by_readers_callers_and_the_end() {
    let demand = Sender::new(Demand::default());
    let is_needed = |sequence| demand.borrow().is_needed(Sequence(sequence));
    assert!(!is_needed(1));
    demand.send_modify(|demand| demand.reads(Sequence(3)));
    assert!(is_needed(3) && !is_needed(4), "a reader waits for the third");
    let caller = BatchCaller::waits(&demand, Sequence(5));
    assert!(is_needed(5) && !is_needed(6), "a caller waits until the fifth is durable");
    drop(caller);
    demand.send_modify(|demand| demand.is_ended = true);
    assert!(is_needed(6), "nothing gathers at the end");
}
