//! The circles between files that are kept, each with its reason. The list only shrinks.

/// A circle that is kept.
pub(crate) struct PermittedCircle {
    /// The crate's folder.
    pub(crate) name: &'static str,
    /// All files of the circle as modules from the crate's root, in order; the root is `.`.
    pub(crate) files: &'static [&'static str],
    /// Why.
    pub(crate) reason: &'static str,
}

/// The circles that are kept.
pub(super) const KEPT: &[PermittedCircle] = &[
    PermittedCircle {
        name: "laboratory/experiments",
        files: &["classes/load", "classes/plan"],
        reason: "a plan names classes of writers, and a run takes a plan",
    },
    PermittedCircle {
        name: "laboratory/experiments",
        files: &["govern", "govern/findings", "govern/measured", "govern/simulated"],
        reason: "the root declares the races, which its parts run and draw",
    },
    PermittedCircle {
        name: "laboratory/experiments",
        files: &[
            "writeback_real",
            "writeback_real/burst",
            "writeback_real/direct",
            "writeback_real/findings",
            "writeback_real/full_speed",
            "writeback_real/small_sync",
        ],
        reason: "the root declares the contenders and runs each race with them",
    },
    PermittedCircle {
        name: "laboratory/kernels",
        files: &["balance", "balance/parts"],
        reason: "the law is computed by parts, which take its figures",
    },
    PermittedCircle {
        name: "laboratory/kernels",
        files: &["flusher", "fs_writeback", "kernel", "pdflush", "state"],
        reason: "threads take steps of the kernel, whose state has the pool and the work of flushers",
    },
    PermittedCircle {
        name: "laboratory/lab",
        files: &[
            "simulate",
            "simulate/answer",
            "simulate/comparison",
            "simulate/description",
            "simulate/disks",
            "simulate/fio_json",
            "simulate/html",
            "simulate/json",
            "simulate/text",
        ],
        reason: "the root declares a run's result; each form of output takes it and shares texts with the others",
    },
    PermittedCircle {
        name: "laboratory/workloads",
        files: &["fio", "fio/apply", "fio/lines"],
        reason: "the root declares a job; lines and options are read into it",
    },
    PermittedCircle {
        name: "laboratory/workloads",
        files: &["touches", "touches/inter_reference", "touches/mixes", "touches/nearly_fits", "touches/streams"],
        reason: "the root declares a touch, and names the generators of touches",
    },
    PermittedCircle {
        name: "product/engine",
        files: &[
            "writeback",
            "writeback/complete",
            "writeback/flusher",
            "writeback/recycled",
            "writeback/requests",
            "writeback/round_tasks",
            "writeback/turn",
        ],
        reason: "a flusher's turn makes requests, whose ends go back to the flusher",
    },
    PermittedCircle {
        name: "product/linux-device",
        files: &[
            "device",
            "device/file",
            "device/file/spare_descriptors",
            "device/flight",
            "device/here",
            "device/turns",
        ],
        reason: "a file of a device starts flights, and a flight ends in its file",
    },
    PermittedCircle {
        name: "product/linux-server",
        files: &[
            "host",
            "host/climb",
            "host/containment",
            "host/filesystems",
            "host/identity",
            "host/journal",
            "host/marks",
            "host/start",
        ],
        reason: "the root declares the tree; its start makes the parts, and each part acts on the tree",
    },
    PermittedCircle {
        name: "product/linux-device",
        files: &["reactor", "reactor/remote"],
        reason: "the reactor owns its mail, which names the reactor that carries it out",
    },
    PermittedCircle {
        name: "tests/nfs-check",
        files: &[
            "race",
            "race/beside",
            "race/cases",
            "race/cold",
            "race/host",
            "race/names",
            "race/report",
            "race/servers",
            "race/sessions",
            "race/tree",
        ],
        reason: "the root declares a race; its cases run on servers that a case may ask for",
    },
    PermittedCircle {
        name: "tests/nfs-check",
        files: &["random", "random/draw", "random/drive", "random/file"],
        reason: "the root declares an operation; drawing and running take it",
    },
    PermittedCircle {
        name: "tests/nfs-client",
        files: &[
            "check",
            "check/attributes",
            "check/callers",
            "check/errors",
            "check/handles",
            "check/listing",
            "check/names",
            "check/reading",
            "check/space",
            "check/transport",
            "check/writes",
        ],
        reason: "the root lists the checks, and declares what a check is",
    },
    PermittedCircle {
        name: "tests/race",
        files: &["fio", "fio/job"],
        reason: "the root declares the race, and a job is run for it",
    },
    PermittedCircle {
        name: "tests/race",
        files: &["in_process", "in_process/files", "in_process/hits", "in_process/misses", "in_process/syncs"],
        reason: "the root declares the caches, and each race runs them",
    },
    PermittedCircle {
        name: "world/simulator",
        files: &["costs", "costs/parse"],
        reason: "the parser makes the table of costs, which the root declares and reads with it",
    },
    PermittedCircle {
        name: "world/simulator",
        files: &["disk", "disk/changing", "disk/fault", "disk/foreign", "disk/service", "disk/state"],
        reason: "a disk's service changes its state, and the state serves requests",
    },
    PermittedCircle {
        name: "world/simulator",
        files: &[
            "disk/timing",
            "disk/timing/any_order",
            "disk/timing/card",
            "disk/timing/channels",
            "disk/timing/elevator",
            "disk/timing/mechanism",
            "disk/timing/rotating",
            "disk/timing/set",
            "disk/timing/shingles",
            "disk/timing/store",
            "disk/timing/throttled",
        ],
        reason: "a timing model is chosen by its mechanism, and mechanisms declare their models",
    },
    PermittedCircle {
        name: "world/simulator",
        files: &["link", "link/stream"],
        reason: "a stream is one end of a link, and a link makes streams",
    },
    PermittedCircle {
        name: "world/simulator",
        files: &["world", "world/cpu", "world/platform", "world/shuffle", "world/task", "world/timer"],
        reason: "the world owns tasks, timers and CPUs, which name the world they run in",
    },
];
