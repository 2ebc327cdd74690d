//! Figures printed in seed S3: "mm: cut down __GFP_NORETRY page allocation failures" and "mm: limit direct reclaim
//! delays", linux-kernel, 28 and 29 April 2011, and the mails of the following days.
//!
//! Owns: the figures as printed, and the machine and load that they were measured with.
//! Does not own: our figures.
//! Invariants: nothing here is rounded or corrected. If several runs or tasks are printed, all that are known are here.

use super::run::{Load, MEMORY_BYTES, Start};

/// Readers, bytes of each file, CPUs of the seed's machine.
pub(super) const READERS: usize = 1000;
pub(super) const FILE_BYTES: u64 = 1 << 30;
pub(super) const CPUS: usize = 8;
/// Seconds in which the readers started; the printed ones are 243, 288 and 294.
pub(super) const START_S: u64 = 270;

/// One task's delays as `getdelays` printed them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Delays {
    pub(super) cpu_count: u64,
    pub(super) cpu_ns: u64,
    pub(super) cpu_delay_ns: u64,
    pub(super) io: (u64, u64),
    pub(super) reclaim: (u64, u64),
}

const fn delays(cpu: [u64; 3], io: (u64, u64), reclaim: (u64, u64)) -> Delays {
    Delays { cpu_count: cpu[0], cpu_ns: cpu[1], cpu_delay_ns: cpu[2], io, reclaim }
}

/// The printed figures of a form of reclaim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Published {
    pub(super) variant: &'static str,
    pub(super) nr_alloc_fail: &'static [u64],
    pub(super) allocstall: &'static [u64],
    /// Interrupts of all CPUs.
    pub(super) function_call_ipis: Option<u64>,
    pub(super) start_s: Option<u64>,
    pub(super) total_s: Option<u64>,
    pub(super) tasks: &'static [Delays],
    pub(super) counters: &'static [(&'static str, u64)],
}

const NOTHING: Published = Published {
    variant: "",
    nr_alloc_fail: &[],
    allocstall: &[],
    function_call_ipis: None,
    start_s: None,
    total_s: None,
    tasks: &[],
    counters: &[],
};

const fn kswapd(scanned: u64, steal: u64, pageoutrun: u64) -> [(&'static str, u64); 3] {
    [("slabs_scanned", scanned), ("kswapd_steal", steal), ("pageoutrun", pageoutrun)]
}

/// The printed figures of each form.
pub(super) const PUBLISHED: [Published; 8] = [
    Published {
        variant: "base",
        nr_alloc_fail: &[10_496],
        allocstall: &[1_576_602],
        function_call_ipis: Some(1_761_627),
        start_s: Some(243),
        total_s: Some(529),
        tasks: &[
            delays([961, 3_176_517_096, 313_952_766_099], (2, 181_251_847), (1205, 38_120_615_476)),
            delays([1270, 4_206_360_536, 358_641_985_177], (0, 0), (1606, 39_897_314_399)),
        ],
        counters: &[
            ("slabs_scanned", 21_632),
            ("kswapd_steal", 4_393_382),
            ("kswapd_low_wmark_hit_quickly", 885),
            ("kswapd_high_wmark_hit_quickly", 2_321),
            ("kswapd_skip_congestion_wait", 0),
            ("pageoutrun", 29_426),
        ],
    },
    Published {
        variant: "wmark-min",
        nr_alloc_fail: &[704],
        allocstall: &[105_551],
        function_call_ipis: Some(2_654),
        counters: &kswapd(33_280, 4_525_537, 35_429),
        ..NOTHING
    },
    Published {
        variant: "wmark-high",
        nr_alloc_fail: &[282],
        allocstall: &[53_860],
        function_call_ipis: Some(2_664),
        counters: &kswapd(23_936, 4_561_178, 32_639),
        ..NOTHING
    },
    Published {
        variant: "wmark-high-limited-scan",
        nr_alloc_fail: &[276],
        allocstall: &[54_034],
        function_call_ipis: Some(2_655),
        tasks: &[delays([865, 2_792_575_464, 235_345_541_230], (4, 300_247_552), (32, 20_504_634_169))],
        counters: &kswapd(24_320, 4_507_482, 32_182),
        ..NOTHING
    },
    Published {
        variant: "time-limit-100ms",
        nr_alloc_fail: &[1_269, 937],
        allocstall: &[128_915, 128_684],
        start_s: Some(288),
        total_s: Some(514),
        tasks: &[
            delays([937, 2_949_551_600, 207_877_301_298], (1, 151_891_691), (71, 25_475_514_278)),
            delays([1201, 3_827_418_144, 221_075_772_599], (4, 300_331_997), (94, 31_996_779_648)),
        ],
        counters: &[
            ("slabs_scanned", 63_616),
            ("kswapd_steal", 4_616_011),
            ("kswapd_low_wmark_hit_quickly", 5_394),
            ("kswapd_high_wmark_hit_quickly", 2_826),
            ("kswapd_skip_congestion_wait", 0),
            ("pageoutrun", 36_679),
        ],
        ..NOTHING
    },
    Published {
        variant: "time-limit-20ms",
        nr_alloc_fail: &[1_662],
        allocstall: &[132_101],
        start_s: Some(294),
        total_s: Some(516),
        tasks: &[delays([839, 2_750_581_848, 198_489_159_459], (1, 43_566_814), (95, 35_234_061_367))],
        ..NOTHING
    },
    // The first run had a limit of time. The others have none, like the form here: the next was posted as "no time
    // limit", and of the last three the least and the most are known.
    Published {
        variant: "stop-above-high",
        nr_alloc_fail: &[4_737, 4_526, 5_144],
        allocstall: &[436_392, 431_021, 440_246],
        ..NOTHING
    },
    // Two runs, with their interrupts a CPU.
    Published {
        variant: "keep-freed-pages",
        nr_alloc_fail: &[14_097, 15_582],
        allocstall: &[1_578_332, 1_583_727],
        function_call_ipis: Some((223_844 + 200_017) / 2 * CPUS as u64),
        ..NOTHING
    },
];

/// Other loads: the load's own words, the form, and its printed figures.
pub(super) struct OtherLoad {
    pub(super) readers: usize,
    pub(super) start: Option<Start>,
    pub(super) published: Published,
}

/// The figures of other loads on the same machine.
pub(super) const OTHERS: [OtherLoad; 2] = [
    OtherLoad {
        readers: 100,
        start: None,
        published: Published {
            variant: "stop-above-high",
            nr_alloc_fail: &[162],
            allocstall: &[45_523],
            start_s: Some(3),
            total_s: Some(50),
            ..NOTHING
        },
    },
    OtherLoad {
        readers: READERS,
        start: Some(Start::OneTask),
        published: Published { variant: "base", nr_alloc_fail: &[733], ..NOTHING },
    },
];

/// The mean delay under `stop-above-high` without a limit of time, and of a hundred readers, as printed.
const STOP_ABOVE_HIGH_MS: f64 = 83.0;
const HUNDRED_READERS_MS: f64 = 13.0;

impl Published {
    /// The mean of the printed runs.
    fn mean(runs: &[u64]) -> Option<f64> {
        (!runs.is_empty()).then(|| runs.iter().sum::<u64>() as f64 / runs.len() as f64)
    }

    /// A counter by its name.
    pub(super) fn counter(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(known, _)| *known == name).map(|(_, count)| *count)
    }

    pub(super) fn stalls(&self) -> Option<f64> {
        Self::mean(self.allocstall)
    }

    pub(super) fn failures(&self) -> Option<f64> {
        Self::mean(self.nr_alloc_fail)
    }

    /// The mean delay of a reclaim over the printed tasks, in milliseconds.
    pub(super) fn delay_ms(&self) -> Option<f64> {
        if self.variant == "stop-above-high" {
            return Some(if self.total_s.is_some() { HUNDRED_READERS_MS } else { STOP_ABOVE_HIGH_MS });
        }
        let (count, ns) =
            self.tasks.iter().fold((0, 0), |(count, ns), task| (count + task.reclaim.0, ns + task.reclaim.1));
        (count > 0).then(|| ns as f64 / count as f64 / 1e6)
    }
}

/// The printed figures of a form, if the machine and the load are the seed's.
pub(super) fn of(variant: &str, load: &Load) -> Option<&'static Published> {
    if load.is_held() || (load.file_bytes, load.memory_bytes, load.cpus) != (FILE_BYTES, MEMORY_BYTES, CPUS) {
        return None;
    }
    let is_one_task = load.start == Start::OneTask;
    if load.readers == READERS && !is_one_task {
        return PUBLISHED.iter().find(|published| published.variant == variant);
    }
    let other = OTHERS.iter().find(|other| {
        let same_start = (other.start == Some(Start::OneTask)) == is_one_task;
        other.readers == load.readers && same_start && other.published.variant == variant
    });
    other.map(|other| &other.published)
}
