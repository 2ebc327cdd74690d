//! The end of a server whose store is away, or takes nothing.
//!
//! Owns: how long an end waits for the store, the words about what stays behind.
//! Does not own: the end while the store takes objects (`serve`, `store_volume`).
//! Invariants: while the store takes objects, the end takes as long as it needs. Without an answer, or when the store
//! refuses each object, the process ends within five seconds, and succeeds only if nothing is lost.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{process, thread};

use afflux_engine::Platform;
use afflux_object::{Clock, HeldNode, ObjectTree, Objects, RecordDatabase, Sequence};
use afflux_report::output;

use crate::control::messages::{ControlReply, DirtyFileReport};
use crate::control::socket_paths::BoundSocket;
use crate::serve::live::{Running, gauges, nanos};
use crate::serve::persisted::arena;
use crate::serve::stores::VolumeLocation;
use crate::serve::stores::store_writer::OpenVolume;
use crate::{progress, watch};

/// The end waits so long for an answer of the store, and so long for the next object that the store takes.
const PATIENCE: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The store is asked so often, since all other requests may be long ones.
const ASK_EVERY_NS: u64 = 1_000_000_000;
/// Any object will do, also one that is absent.
const ASKED: &str = "holder";

/// The parts of a volume that report what is not in the store.
pub(crate) struct UnstoredView {
    pub(crate) location: VolumeLocation,
    pub(crate) volume: Arc<OpenVolume>,
    pub(crate) tree: Arc<ObjectTree<OpenVolume>>,
}

/// Ends the process once the store has given no answer, or has taken no object, for a while. Call it when the server is
/// ordered to end.
pub(crate) fn watch(left: UnstoredView, running: &Arc<Running>, control: &Arc<BoundSocket>, json: bool) {
    let (objects, clock) = (left.location.store.objects(), left.location.store.clock());
    left.location.platform.spawn("store end, asking", async move {
        loop {
            // The store notes the answer.
            drop(objects.get(ASKED, 0..1).await);
            clock.sleep_until_ns(clock.now_ns().saturating_add(ASK_EVERY_NS)).await;
        }
    });
    let (running, control) = (Arc::clone(running), Arc::clone(control));
    // Later changes are those of the end itself: times that the store has in another form.
    let (told, last) = (Instant::now(), left.tree.last_change());
    let watching = thread::Builder::new().name("store end".to_owned()).spawn(move || {
        let store = &left.location.store;
        let stuck_ns = || nanos(told.elapsed()).min(store.silent_ns().max(store.untaken_ns()));
        while stuck_ns() < nanos(PATIENCE) {
            thread::sleep(LOOK_EVERY);
        }
        control.remove();
        give_up(&left, last, &running, json);
    });
    if let Err(error) = watching {
        tracing::warn!("the end waits for the store without a limit: {error}");
    }
}

/// Reports what is not in the store, and ends the process.
fn give_up(left: &UnstoredView, last: Sequence, running: &Running, json: bool) -> ! {
    let unwritten = left.unwritten(running);
    let changes = last.0.saturating_sub(left.volume.records().durable_through().0);
    let is_lost = !unwritten.is_empty() || changes > 0;
    if json {
        watch::say_json(&ControlReply::Abandoned { unwritten: unwritten.clone() });
    }
    let url = output::shown(&left.location.url);
    let store = &left.location.store;
    let event = if store.silent_ns() >= nanos(PATIENCE) { "gives no answer" } else { "takes no changes" };
    let why = output::bracketed(store.refusal().or_else(|| store.trouble()).map(|trouble| trouble.why));
    output::remark(format_args!("{url} {event}{why}; this server ends without it."));
    if !is_lost {
        output::remark("Everything was written before. The next server reads the log of the volume first.");
        process::exit(0);
    }
    if changes > 0 {
        output::remark(format_args!("Lost: up to {changes} of the last changes of names and attributes."));
    }
    let first = match &running.arena {
        _ if unwritten.is_empty() => "All bytes of files were written.".to_owned(),
        None => "Lost, unless clients send it again, as those of NFS do:".to_owned(),
        arena => arena::stopped_at_once(false, arena.as_ref()),
    };
    output::remark(progress::unwritten(&first, &unwritten));
    process::exit(1);
}

impl UnstoredView {
    /// The files with bytes that are not in the store. The engine has some of them, and the volume has some.
    fn unwritten(&self, running: &Running) -> Vec<DirtyFileReport> {
        let mut files: BTreeMap<u64, u64> = self.volume.volatile_bytes();
        let devices = running.engine.status().devices;
        for (file, bytes) in devices.iter().flat_map(|device| running.engine.dirty_files(device.id)) {
            if let Some(number) = file.backing().get::<HeldNode>().map(HeldNode::ino) {
                // The volume may have the same bytes, in flight.
                let known = files.entry(number).or_default();
                *known = bytes.max(*known);
            }
        }
        let unwritten = |(number, bytes)| {
            let reason = if bytes == 0 { "its last sync has no answer" } else { "the store did not take them" };
            DirtyFileReport { file: gauges::numbered(number), bytes, reason: Some(reason.to_owned()) }
        };
        files.into_iter().map(unwritten).collect()
    }
}
