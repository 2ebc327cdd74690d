//! The text of docs/reference/counters.md: counters, gauges of devices and of NFS, events.

use std::fmt::Write as _;

use afflux_engine::counters::COUNTERS;
use afflux_engine::policy::FigureInfo;

/// A device's gauges in `afflux stat --json`; a test of the command asks for each by name.
const DEVICE_GAUGES: &[(&str, &str, &str)] = &[
    ("name", "", "As `afflux set --device` takes it."),
    ("described", "", "How it is attached, read and written."),
    ("dirty_bytes", "bytes", "Not yet written, those on the way included (BdiReclaimable and BdiWriteback)."),
    (
        "dirty_runs",
        "runs",
        "In how many runs: dirty pages that follow each other in a file, and requests on the way that continue none. \
         A disk that seeks needs about as many seeks.",
    ),
    ("writeback_bytes", "bytes", "On the way to the device (BdiWriteback)."),
    ("dirty_limit_bytes", "bytes", "Where its writers are made to wait (BdiDirtyThresh)."),
    (
        "background_threshold_bytes",
        "bytes",
        "What is dirty and not on the way, above which its flusher starts to write: the lowest of the thresholds in \
         force (BackgroundThresh). With `dirty_background_centisecs` it is at most \
         `write_bandwidth_bytes_per_s` x centiseconds / 100, so that it moves with the estimate; 0 before there is one.",
    ),
    (
        "write_bandwidth_bytes_per_s",
        "bytes/s",
        "How fast the device writes: bytes completed over the time with a write in flight, over the last 3 s of such \
         time, so that idle time does not count (BdiWriteBandwidth, in which it does). Null before the first writes.",
    ),
    ("dirtied_bytes", "bytes", "Dirtied since the server started (BdiDirtied)."),
    ("written_bytes", "bytes", "Written since the server started (BdiWritten)."),
    ("read_bytes", "bytes", "Read since the server started."),
    ("b_dirty", "files", "Became dirty and have had no turn to be written."),
    ("b_io", "files", "Of the round of turns that is under way."),
    ("b_more_io", "files", "Had their turn of it and have more."),
    ("busy_ns", "ns", "Time during which it had a request."),
    ("in_flight_requests", "requests", "Handed to it and not answered."),
    ("writers_waiting", "writers", "Waiting for its dirty limit."),
    ("files_dirty", "files", "With something not yet written."),
    ("files_failed", "files", "Whose last write or flush failed."),
    ("last_error", "", "The last error of a write or flush, in words, or null."),
    (
        "knobs",
        "",
        "Knobs that have a value of their own for this device; the others are as in `knobs` beside `devices`.",
    ),
    (
        "away_ns",
        "ns",
        "The object store behind it has given no answer for so long; its writers and syncs wait. Null while it answers, \
         and for a disk.",
    ),
    (
        "knobs_in_force",
        "",
        "Knobs that somebody has set and that act on the device with another value: an object for each `knob` with that \
         `value` (null: it has no effect), its `unit`, and the reason (`because`). The reply of `afflux set --json` has \
         the same under `in_force`, with the `device`.",
    ),
    (
        "store",
        "",
        "The object store behind it: its requests since the start (`puts`, `gets`, `lists`, `deletes`), its words about \
         a request that failed and is repeated (`trouble`), whether the volume is only read (`is_read_only`), the \
         time since its last answer (`silent_ns`), and the requests that wait for it (`waiting`, the oldest for `waiting_ns`). \
         Null for a disk.",
    ),
    (
        "stalled_ns",
        "ns",
        "It hangs: it has requests, and for so long it has completed none; more than its policy finds usual. Null while it \
         does not.",
    ),
    (
        "names_stalled_ns",
        "ns",
        "It hangs for names: a call for a name or an attribute has not ended for so long, more than 5 s. Null while no call is \
         that old, and for a store.",
    ),
    ("refuses", "", "Whether it hangs for longer than `hang_error_ms`, so that its writers and syncs are refused."),
    (
        "in_force",
        "",
        "What the policy in force says of the device: an object of figures by the policy's own names, null where one is \
         not known; below.",
    ),
    (
        "pauses",
        "",
        "Writers' pauses, an object for each `cause` that there was: how many are `waiting`, how many ended (`count`), \
         their sum (`ns`), the longest (`longest_ns`).",
    ),
    (
        "waits",
        "",
        "How long waits took, an object for each kind: `throttle` (a write that had to wait: all its pauses together, and \
         what it wrote itself), `reclaim` (a call that had to wait for a frame), `read` (one that had to wait for bytes to \
         be read), `pause` (single ones), `sync` (as its caller saw it), `commit` (a COMMIT of a file that was written to). Each \
         has `count` and sum (`ns`), `p50_ns`, `p99_ns`, `p999_ns`, and the longest (`max_ns`). All are since the server \
         started; quantiles are at most 3.2 % off, the longest is exact. Waits that are not over yet are not in it; \
         nor are writes and syncs that did not have to wait.",
    ),
    (
        "waiting",
        "",
        "Who waits now, longest first, at most 16: an object for each `file` and `client` (its address, or null) with \
         what it `waits_for` (a cause of pauses, or `sync`), how many `calls` do, and how long the first of these has \
         (`ns`): a write, since its first pause.",
    ),
    ("waiting_more", "", "How many more there are."),
    (
        "clients",
        "",
        "What clients waited for since the start, the 64 that ended a wait last: address (`client`) and user (`uid`, or \
         null), how many of its calls are `waiting`, and times as in `waits` for each of `throttle`, `reclaim`, `read` and \
         `sync`. The difference of two reports is what it waited in between. `afflux delays --json` has all of them.",
    ),
];

/// The events of `afflux trace --json`; a test of the command asks for each by name.
const EVENTS: &[(&str, &str, &str)] = &[
    (
        "pause_begins",
        "`wait`, `cause`",
        "A writer begins to wait. `wait` is the same at the end; each device counts its own.",
    ),
    ("pause_ends", "`wait`, `cause`, `ns`", "It goes on, is asked about again, or has gone away."),
    ("sync_begins", "`wait`", "Somebody begins to wait for a sync of the file."),
    ("sync_ends", "`wait`, `ns`", "The sync is over, or whoever waited has gone away."),
    ("commit", "`ns`", "A COMMIT is over, or its client has gone away."),
    (
        "turn",
        "`reason`, `pages`, `ns`",
        "The flusher gave the file a turn that ended now: because of a `sync`, a `retry`, `background` writeback, \
         since its data had `expired`, or because the device would have been `idle`. So many pages were put on their way.",
    ),
    (
        "submitted",
        "`operation`, `offset`, `bytes`",
        "A request goes to the device: `read`, `write`, `flush`, `set size`, `punch`, `reserve`.",
    ),
    (
        "completed",
        "`operation`, `offset`, `bytes`, `ns`, `error`",
        "A request has ended, so long after it was submitted.",
    ),
    (
        "set_aside",
        "`ns`",
        "A request of the file has not ended for so long. Other files get its place in the device, and the file gets no further request until it ends.",
    ),
    ("knob_changed", "`knob`, `value`", "A knob was set, for the device or for all."),
    ("device_added", "", "The first file of a device was met."),
    ("device_over", "`over`", "The policy says that the device is over its limit, or is so no more."),
    ("device_failing", "`error`", "Writes keep failing, so that writers are told; null once one has succeeded."),
    (
        "device_hangs",
        "`ns`, `refuses`",
        "The device has requests and has completed none for so long; whether its writers and syncs are refused for that.",
    ),
    ("device_goes_on", "`ns`", "It has completed something, after so long, or has nothing to do any more."),
    ("lost", "`events`", "So many events are missing here, of all devices: they came faster than they were read."),
];

/// The gauges of the NFS front end in `afflux stat --json`; a test of the command asks for each by name.
const NFS_GAUGES: &[(&str, &str, &str)] = &[
    ("connections", "connections", "Open now."),
    ("connections_max", "connections", "How many there may be: 1,024, or fewer with a low limit on descriptors."),
    ("closed_silent", "connections", "Closed since the start because they were silent for `nfs_idle_centisecs`."),
    ("closed_for_room", "connections", "Closed to make room for new ones."),
    (
        "refused",
        "connections",
        "Refused because all that could have made room for them had calls in progress (`nfs_peer_connections_max`).",
    ),
    (
        "request_bytes",
        "bytes",
        "What connections hold now, at most `nfs_request_bytes_max`: records being received or that wait, data and \
         expected replies of calls in progress, replies not sent yet, buffers.",
    ),
    (
        "connections_at_work",
        "connections",
        "Connections with a part of a request, a call in progress or an unsent reply. Beside these, `request_bytes` counts the \
         empty buffers of idle connections.",
    ),
    ("waiting_for_room", "connections", "Waiting until others hold less."),
    (
        "closed_stalled",
        "connections",
        "Closed because others waited for what they held, and their peers neither finished a record nor took replies.",
    ),
    (
        "closed_unread",
        "connections",
        "Reset because there was no room to receive what their clients had sent, for 15 seconds: what they wrote to \
         did not take it. A client connects and asks again.",
    ),
    (
        "calls",
        "calls",
        "An object: how many there were of each procedure, of each refusal (`rpc_auth_tooweak`: the peer is not \
         one of those that are answered) and of each status other than OK.",
    ),
    (
        "clients",
        "",
        "An object: for the address of each client that has connections how many these are (`connections`), and what \
         came and went back over them (`received_bytes`, `sent_bytes`: calls and data).",
    ),
];

/// The document.
pub(crate) fn text() -> String {
    let mut text = String::from(
        "# Counters\n\n\
         Generated by `cargo xtask docs` from `product/engine/src/counters.rs`; do not edit.\n\n\
         `afflux stat --json` prints all of them under `counters`. Each starts at 0 when the \
         server starts and only grows.\n\n\
         | counter | unit | what is counted |\n\
         |-|-|-|\n",
    );
    for counter in COUNTERS {
        let _ = writeln!(text, "| `{}` | {} | {} |", counter.name, counter.unit, counter.doc);
    }
    text.push_str(
        "\n## Devices\n\n\
         Under `devices` stands an object for each, with how it is now. In brackets the kernel's name of a \
         figure in `/sys/kernel/debug/bdi/*/stats`. `policy`, beside `devices`, is the name of the policy in force.\n\n\
         | figure | unit | what it is |\n\
         |-|-|-|\n",
    );
    for (name, unit, doc) in DEVICE_GAUGES {
        let _ = writeln!(text, "| `{name}` | {unit} | {doc} |");
    }
    for (policy, figures) in
        [("afflux", &afflux_budget::FIGURES[..]), ("equal-parts", &afflux_engine::policy::EQUAL_PARTS_FIGURES)]
    {
        let _ = write!(
            text,
            "\n### `in_force` of the policy `{policy}`\n\n\
             | figure | unit | what it is |\n\
             |-|-|-|\n"
        );
        for FigureInfo { name, unit, doc } in figures {
            let _ = writeln!(text, "| `{name}` | {unit} | {doc} |");
        }
    }
    text.push_str("\n## NFS\n\nUnder `nfs`.\n\n| figure | unit | what it is |\n|-|-|-|\n");
    for (name, unit, doc) in NFS_GAUGES {
        let _ = writeln!(text, "| `{name}` | {unit} | {doc} |");
    }
    text.push_str(
        "\n## Events\n\n\
         `afflux trace --json` prints an object a line for each event from then on. Each has `at_ns` (since the server \
         was ready, as `uptime_ns` in a report), and where they apply `device`, `file` and `client`, otherwise null. The \
         server keeps the last 16,384 events for those who follow them, and none while nobody does.\n\n\
         | `event` | has | what happened |\n\
         |-|-|-|\n",
    );
    for (name, fields, doc) in EVENTS {
        let _ = writeln!(text, "| `{name}` | {fields} | {doc} |");
    }
    text
}
