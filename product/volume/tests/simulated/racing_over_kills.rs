//! Two clients change the same names over kills of their server. Each client repeats its unanswered calls.
//!
//! A seed gives the calls, the order of tasks, the moments of the kills and the calls whose note is lost: the kill came
//! between the host's call and the note. Then all answers are compared with a model of the names: there must be an
//! order of the calls, each at one moment between its first sending and its answer, that gives these answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use afflux_engine::Platform;
use afflux_simulator::{Random, SimPlatform};
use afflux_volume::{
    AttributeChange, Before, Caller, CreateHow, PersistedChange, RenameHow, SpecialKind, VolumeError, handle_hash,
};

use crate::client::{Files, Object};
use crate::clients::number_from_env;
use crate::killed::Life;

const SEEDS: u64 = 120;
const LIVES: u64 = 5;
const CALLS: usize = 14;
const NAMES: [&str; 3] = ["a", "b", "c"];
const STEPS_MAX: u64 = 250;

/// The memory of a call, which outlives its server.
#[derive(Debug, Default)]
pub(crate) struct KeptCall {
    /// The number of the object at the beginning.
    object: AtomicU64,
    is_begun: AtomicBool,
    noted: Mutex<Option<u64>>,
    loses: bool,
}

/// A call as one server carries it out.
#[derive(Debug)]
struct AskedCall {
    call: Arc<KeptCall>,
    before: Before,
}

impl KeptCall {
    /// A kill loses its note.
    pub(crate) fn losing() -> Self {
        Self { loses: true, ..Self::default() }
    }

    /// The call is asked for, perhaps once more.
    pub(crate) fn asked(self: Arc<Self>) -> Arc<dyn PersistedChange> {
        let before = match (*self.noted.lock().unwrap(), self.is_begun.swap(true, Ordering::Relaxed)) {
            (Some(object), _) => Before::Done { object },
            (None, true) => Before::Begun { value: 0, object: self.object.load(Ordering::Relaxed) },
            (None, false) => Before::Nothing,
        };
        Arc::new(AskedCall { call: self, before })
    }
}

impl PersistedChange for AskedCall {
    fn before(&self) -> Before {
        self.before
    }

    fn note_done(&self, object: u64) {
        if !self.call.loses {
            *self.call.noted.lock().unwrap() = Some(object);
        }
    }
}

/// The kinds of objects that matter to these calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Made {
    File,
    Symlink,
    Fifo,
    Directory,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Make(Made, usize),
    Remove(usize),
    RemoveDirectory(usize),
    Rename(usize, usize, RenameHow),
    /// Gives the file beside the directory a further name.
    Link(usize),
}

impl Call {
    fn any(random: &mut Random) -> Self {
        let [one, other] = [(); 2].map(|()| random.below(NAMES.len() as u64) as usize);
        match random.below(14) {
            0..=1 => Self::Make(Made::File, one),
            2..=3 => Self::Make(Made::Directory, one),
            4 => Self::Make(Made::Symlink, one),
            5 => Self::Make(Made::Fifo, one),
            6..=7 => Self::Remove(one),
            8 => Self::RemoveDirectory(one),
            9 => Self::Rename(one, other, RenameHow::Replace),
            10 => Self::Rename(one, other, RenameHow::NoReplace),
            11 => Self::Rename(one, other, RenameHow::Exchange),
            _ => Self::Link(one),
        }
    }

    /// Carries it out; returns the number of a made object.
    async fn carry_out(self, volume: &Arc<Files>, user: u32, kept: &Arc<KeptCall>) -> Result<u64, VolumeError> {
        let directory = volume.mount(b"shared").await.unwrap();
        if let (Self::Rename(old, _, RenameHow::Exchange), false) = (self, kept.is_begun.load(Ordering::Relaxed)) {
            let object = volume.handle_hash_of((&directory, NAMES[old].as_bytes())).await;
            kept.object.store(object.unwrap_or_default(), Ordering::Relaxed);
        }
        let caller = volume.caller(user, user, &[]).keeping(Arc::clone(kept).asked());
        let name = |at: usize| NAMES[at].as_bytes();
        match self {
            Self::Make(kind, at) => make(volume, &caller, &directory, name(at), kind).await,
            Self::Remove(at) => volume.remove_by(&caller, &directory, name(at)).await.result.map(|()| 0),
            Self::RemoveDirectory(at) => {
                volume.remove_directory_by(&caller, &directory, name(at)).await.result.map(|()| 0)
            }
            Self::Rename(old, new, how) => {
                let renamed = volume.rename_how_by(&caller, &directory, name(old), &directory, name(new), how);
                renamed.await.0.result.map(|()| 0)
            }
            Self::Link(at) => {
                let (root, file) = (volume.mount(b"").await.unwrap(), b"file");
                let file = volume.lookup(&root, file).await.unwrap().0;
                volume.link_by(&caller, &file, &directory, name(at)).await.result.map(|_| 0)
            }
        }
    }
}

async fn make(
    volume: &Arc<Files>,
    caller: &Caller,
    directory: &Object,
    name: &[u8],
    kind: Made,
) -> Result<u64, VolumeError> {
    let none = AttributeChange::default();
    let made = match kind {
        Made::File => volume.create_by(caller, directory, name, CreateHow::Guarded(none)).await,
        Made::Directory => volume.make_directory_by(caller, directory, name, none).await,
        Made::Symlink => volume.symlink_by(caller, directory, name, b"target", none).await,
        Made::Fifo => volume.make_special_by(caller, directory, name, SpecialKind::Fifo, none).await,
    };
    let (object, attributes) = made.result?;
    assert_eq!(Some(attributes.uid), caller.credentials().map(|user| user.uid), "a made object is its maker's");
    Ok(handle_hash(volume.handle(&object).as_bytes()).unwrap())
}

/// A call with its answer.
#[derive(Clone, Debug)]
struct Answered {
    call: Call,
    sent_at: u64,
    answered_at: u64,
    result: Result<u64, VolumeError>,
    /// Servers that were asked.
    tries: u64,
    loses: bool,
}

/// A client: its calls, of which the last may have no answer yet.
struct Racer {
    user: u32,
    calls: Vec<(Call, Arc<KeptCall>)>,
    begun: Option<(u64, u64)>,
    answered: Vec<Answered>,
}

impl Racer {
    fn new(user: u32, random: &mut Random) -> Self {
        let kept = |random: &mut Random| KeptCall { loses: random.below(4) == 0, ..KeptCall::default() };
        let calls = (0..CALLS).map(|_| (Call::any(random), Arc::new(kept(random)))).collect();
        Self { user, calls, begun: None, answered: Vec::new() }
    }
}

/// Sends the calls of a client, from the one that has no answer on. It notices the new server after some steps.
async fn race(platform: Arc<SimPlatform>, of: (Arc<Files>, Arc<Mutex<Racer>>, Arc<AtomicU64>), steps: u64) {
    let (volume, racer, clock) = of;
    for _ in 0..steps {
        platform.preemption_point().await;
    }
    loop {
        let (user, (call, kept)) = {
            let mut racer = racer.lock().unwrap();
            let Some(next) = racer.calls.get(racer.answered.len()).cloned() else { return };
            let (sent_at, tries) = racer.begun.unwrap_or_else(|| (clock.fetch_add(1, Ordering::Relaxed), 0));
            racer.begun = Some((sent_at, tries + 1));
            (racer.user, next)
        };
        let result = call.carry_out(&volume, user, &kept).await;
        let mut racer = racer.lock().unwrap();
        let (sent_at, tries) = racer.begun.take().unwrap();
        let answered_at = clock.fetch_add(1, Ordering::Relaxed);
        racer.answered.push(Answered { call, sent_at, answered_at, result, tries, loses: kept.loses });
    }
}

/// The objects of the names, by their numbers. One that nobody was told of has the number 0.
type Names = BTreeMap<usize, (Made, u64)>;

/// The number of the file that gets further names.
const LINKED: u64 = u64::MAX;

/// Carries a call out in the model, with this number for a made object.
fn model(names: &Names, call: Call, number: u64) -> Result<Names, VolumeError> {
    let mut names = names.clone();
    let find = |names: &Names, at| names.get(&at).copied().ok_or(VolumeError::NotFound);
    match call {
        Call::Make(_, at) | Call::Link(at) if names.contains_key(&at) => return Err(VolumeError::Exists),
        Call::Make(kind, at) => drop(names.insert(at, (kind, number))),
        Call::Link(at) => drop(names.insert(at, (Made::File, LINKED))),
        Call::Remove(at) => match find(&names, at)? {
            (Made::Directory, _) => return Err(VolumeError::IsDirectory),
            _ => drop(names.remove(&at)),
        },
        Call::RemoveDirectory(at) => match find(&names, at)? {
            (Made::Directory, _) => drop(names.remove(&at)),
            _ => return Err(VolumeError::NotDirectory),
        },
        Call::Rename(old, new, how) => {
            let moved = find(&names, old)?;
            match (how, names.get(&new).copied()) {
                (RenameHow::NoReplace, Some(_)) => return Err(VolumeError::Exists),
                (RenameHow::Exchange, other) => {
                    names.insert(old, other.ok_or(VolumeError::NotFound)?);
                    names.insert(new, moved);
                }
                _ if old == new => {}
                (_, Some((_, LINKED))) if moved.1 == LINKED => {}
                (_, Some((Made::Directory, _))) if moved.0 != Made::Directory => return Err(VolumeError::IsDirectory),
                (_, Some((kind, _))) if kind != Made::Directory && moved.0 == Made::Directory => {
                    return Err(VolumeError::NotDirectory);
                }
                _ => {
                    names.remove(&old);
                    names.insert(new, moved);
                }
            }
        }
    }
    Ok(names)
}

impl Answered {
    /// How often earlier tries may have done it, unknown to the one that answered: their note was lost. A creation may
    /// also be refused though it was noted, since its object has lost the name.
    fn unknown_max(&self) -> u64 {
        let is_lost = self.loses || self.result.is_err() && matches!(self.call, Call::Make(..));
        if is_lost { self.tries - 1 } else { 0 }
    }

    /// The names after the call has been answered, if the model gives this answer; `unknown` tries have done it before.
    fn outcome(&self, names: &Names, unknown: u64) -> Option<Names> {
        let is_exchange = matches!(self.call, Call::Rename(_, _, RenameHow::Exchange));
        match (&self.result, model(names, self.call, *self.result.as_ref().unwrap_or(&0))) {
            (Ok(_), outcome) => outcome.ok(),
            (Err(VolumeError::Stale), _) => (unknown > 0).then(|| names.clone()),
            // In doubt it is not done again.
            (Err(VolumeError::Exists), _) if is_exchange && self.tries > 1 => Some(names.clone()),
            (Err(error), outcome) => (outcome.as_ref().err() == Some(error)).then(|| names.clone()),
        }
    }
}

/// How far the calls of both clients are: the number of answered ones, and the tries of the next one that have done it.
type Progress = [(usize, u64); 2];

/// The states that explain nothing.
type Visited = BTreeSet<(Progress, Names)>;

/// Whether some order of the calls gives all answers, and these names at the end.
fn is_explained(of: [&[Answered]; 2], names: &Names, progress: Progress, end: &Names, failed: &mut Visited) -> bool {
    let next = [0, 1].map(|client| of[client].get(progress[client].0));
    if next.iter().all(Option::is_none) {
        // Nobody was told of the objects with the number 0.
        let is_same = |(at, (kind, number)): (&usize, &(Made, u64))| {
            end.get(at).is_some_and(|there| there.0 == *kind && (*number == 0 || there.1 == *number))
        };
        return names.len() == end.len() && names.iter().all(is_same);
    }
    if !failed.insert((progress, names.clone())) {
        return false;
    }
    [0, 1].into_iter().any(|client| {
        let Some(call) = next[client] else { return false };
        if next[1 - client].is_some_and(|other| other.answered_at < call.sent_at) {
            return false;
        }
        let (answered, unknown) = progress[client];
        let mut at = |one: (usize, u64), names: &Names| {
            let mut progress = progress;
            progress[client] = one;
            is_explained(of, names, progress, end, failed)
        };
        let is_answered = call.outcome(names, unknown).is_some_and(|names| at((answered + 1, 0), &names));
        let may_repeat = unknown < call.unknown_max();
        is_answered || may_repeat && model(names, call.call, 0).is_ok_and(|names| at((answered, unknown + 1), &names))
    })
}

/// The names of the directory, by numbers of their objects.
async fn found(volume: &Arc<Files>) -> Names {
    let root = volume.mount(b"").await.unwrap();
    let linked = volume.lookup(&root, b"file").await.unwrap().0;
    let directory = volume.mount(b"shared").await.unwrap();
    let mut names = Names::new();
    for (at, name) in NAMES.iter().enumerate() {
        let Ok((object, _)) = volume.lookup(&directory, name.as_bytes()).await else { continue };
        let kind = match object.kind() {
            afflux_volume::Kind::Directory => Made::Directory,
            afflux_volume::Kind::Symlink => Made::Symlink,
            afflux_volume::Kind::Fifo => Made::Fifo,
            _ => Made::File,
        };
        let number = handle_hash(volume.handle(&object).as_bytes()).unwrap();
        names.insert(at, (kind, if Arc::ptr_eq(&object, &linked) { LINKED } else { number }));
    }
    names
}

fn lines(calls: &[Answered]) -> String {
    calls.iter().map(|call| format!("{call:?}")).collect::<Vec<_>>().join("\n")
}

/// Races one seed; returns how many calls were repeated with success.
fn one_seed(seed: u64) -> usize {
    let mut random = Random::new(seed).fork(79);
    let mut life = Life::first(seed);
    life.run(async {
        let root = life.volume.mount(b"").await.unwrap();
        life.volume.make_directory(&root, b"shared", AttributeChange::default()).await.result.unwrap();
        life.volume.create(&root, b"file", CreateHow::Guarded(AttributeChange::default())).await.result.unwrap();
    });
    // Programs of one user race, too.
    let users = [1001, 1001 + u32::from(seed.is_multiple_of(2))];
    let racers = users.map(|user| Arc::new(Mutex::new(Racer::new(user, &mut random))));
    let clock = Arc::new(AtomicU64::new(0));
    for number in 1..=LIVES {
        for racer in &racers {
            let (platform, steps) = (Arc::clone(life.world.platform()), random.below(STEPS_MAX));
            let of = (Arc::clone(&life.volume), Arc::clone(racer), Arc::clone(&clock));
            life.world.spawn("racer", race(platform, of, steps));
        }
        let has_ended = || racers.iter().all(|racer| racer.lock().unwrap().answered.len() == CALLS);
        let (steps, platform) = (random.below(STEPS_MAX), Arc::clone(life.world.platform()));
        life.run(async {
            let mut step = 0;
            while if number == LIVES { !has_ended() } else { step < steps } {
                platform.preemption_point().await;
                step += 1;
            }
        });
        if number < LIVES {
            life = life.next(seed + number, &mut random);
        }
    }
    let end = life.run(found(&life.volume));
    let [one, other] = racers.map(|racer| std::mem::take(&mut racer.lock().unwrap().answered));
    let is_right = is_explained([&one, &other], &Names::new(), [(0, 0); 2], &end, &mut Visited::new());
    assert!(
        is_right,
        "seed {seed}: no order explains these answers:
{}

{}
{end:?}",
        lines(&one),
        lines(&other)
    );
    let made = |it: &&Answered| matches!(it.call, Call::Make(..)) && it.result.is_ok();
    let numbers: Vec<u64> = one.iter().chain(&other).filter(made).flat_map(|it| it.result.clone()).collect();
    assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "seed {seed}: an object has one maker");
    one.iter().chain(&other).filter(|it| it.tries > 1 && it.result.is_ok()).count()
}

// rule: over kills no client gets success for a change of another one, and a made object is its maker's
// kept in: `product/volume/src/names/repeated.rs`
#[test]
fn two_clients_that_race_over_kills_get_answers_that_an_order_of_their_calls_explains() {
    let first = number_from_env("AFFLUX_FIRST_SEED", 1);
    let count = number_from_env("AFFLUX_SEEDS", SEEDS);
    let repeated: usize = (first..first + count).map(one_seed).sum();
    assert!(repeated as u64 >= count / 4, "{repeated} repeated calls have succeeded");
}
