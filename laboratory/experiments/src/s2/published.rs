//! The published figures of S2.
//!
//! Owns: the table of the series' announcement (18 August 2009) and the figures of the shorter series that followed it
//! (28 August 2009, patches 1 and 2).
//! Does not own: our figures. Invariants: a figure is the percentage of throughput gained over the allocator before the
//! series; «none» stands for the author's 'no difference', 'no significant difference', or noise.

use afflux_report::Fields;
use serde_json::{Value, json};

use super::loops::LoopKind;

/// The machines: Pentium D 3 GHz, Phenom 9950, PPC970MP 2.5 GHz.
const MACHINES: [&str; 3] = ["x86", "x86-64", "ppc64"];

/// The published result of a benchmark on a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum PublishedGain {
    /// No difference, or none beyond noise.
    Nothing,
    /// Percent gained.
    Percent(f64),
    /// Percent gained, from and to.
    Range(f64, f64),
    /// A gain stated in words, without a figure.
    Gains,
    /// A loss stated in words.
    Losses,
}

use PublishedGain::{Gains, Losses, Nothing, Percent, Range};

impl PublishedGain {
    fn text(self) -> String {
        match self {
            Nothing => "none".to_owned(),
            Percent(percent) => format!("{percent:+.2} %"),
            Range(from, to) => format!("{from:+} to {to:+} %"),
            Gains => "gains".to_owned(),
            Losses => "losses".to_owned(),
        }
    }

    fn value(self) -> Value {
        match self {
            Percent(percent) => json!(percent),
            Range(from, to) => json!([from, to]),
            other => json!(other.text()),
        }
    }
}

/// A line of the table.
struct Line {
    benchmark: &'static str,
    /// The results by machine.
    said: [PublishedGain; 3],
    /// Our loop for this benchmark.
    work: LoopKind,
}

const fn line(benchmark: &'static str, said: [PublishedGain; 3], work: LoopKind) -> Line {
    Line { benchmark, said, work }
}

const fn netperf(kib: u32) -> LoopKind {
    LoopKind::Netperf { kib }
}

/// The whole series.
const TABLE: [Line; 14] = [
    line("kernbench", [Nothing, Nothing, Nothing], LoopKind::Kernbench),
    line("aim9 page_test", [Range(3.0, 6.0), Nothing, Nothing], LoopKind::PageTest),
    line("aim9 brk_test", [Range(3.0, 6.0), Nothing, Nothing], LoopKind::BrkTest),
    line("netperf-udp 1024", [Nothing, Nothing, Range(2.0, 3.0)], netperf(1)),
    line("netperf-udp 2048", [Nothing, Nothing, Range(2.0, 3.0)], netperf(2)),
    line("netperf-udp 4096", [Nothing, Percent(1.39), Range(2.0, 3.0)], netperf(4)),
    line("netperf-udp 8192", [Nothing, Percent(6.8), Range(2.0, 3.0)], netperf(8)),
    line("netperf-udp 16384", [Nothing, Percent(9.55), Range(2.0, 3.0)], netperf(16)),
    line("netperf-tcp 1024", [Nothing, Nothing, Losses], netperf(1)),
    line("netperf-tcp 2048", [Nothing, Nothing, Losses], netperf(2)),
    line("netperf-tcp 4096", [Nothing, Percent(14.14), Gains], netperf(4)),
    line("netperf-tcp 8192", [Nothing, Nothing, Gains], netperf(8)),
    line("netperf-tcp 16384", [Nothing, Percent(-12.56), Gains], netperf(16)),
    line("hackbench", [Nothing, Nothing, Range(1.0, 2.0)], LoopKind::Hackbench),
];

/// The shorter series, with figures for one buffer size: x86-64, TCP.
const TWO_PATCHES_TCP: [(u32, PublishedGain); 3] = [(4, Percent(15.83)), (8, Nothing), (16, Percent(1.0))];

/// The published figures for a loop and a variant: the whole series is ZoneTunables, two patches of it are
/// BatchedDrain.
pub(super) fn fields(work: LoopKind, variant: &str) -> Fields {
    let mut fields = Fields::new();
    let name = |protocol: &str, machine: &str| format!("{protocol}gain_percent_{}", machine.replace('-', "_"));
    let protocol = |benchmark: &str| match benchmark.split_once(' ') {
        Some(("netperf-udp", _)) => "udp_",
        Some(("netperf-tcp", _)) => "tcp_",
        _ => "",
    };
    if variant == "ZoneTunables" {
        for line in TABLE.iter().filter(|line| line.work == work) {
            for (machine, said) in MACHINES.iter().zip(line.said) {
                fields.push(name(protocol(line.benchmark), machine), said.value());
            }
        }
    } else if variant == "BatchedDrain"
        && let LoopKind::Netperf { kib } = work
        && let Some((_, said)) = TWO_PATCHES_TCP.iter().find(|(of, _)| *of == kib)
    {
        fields.push(name("tcp_", "x86-64"), said.value());
    }
    fields
}
