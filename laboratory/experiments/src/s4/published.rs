//! The table of seed S4: the patch "dirty_background_centisecs" of 16 September 2012, linux-kernel; and the gains by
//! clients that the thread printed later.
//!
//! Owns: the figures as printed. Does not own: our figures.
//! Invariants: nothing here is rounded or corrected.

use afflux_report::Fields;

use super::plan::{Plan, Threshold};

/// Centiseconds of the table's columns; 0 is off.
pub(super) const CENTISECS: [u64; 4] = [0, 300, 200, 100];

/// Record bytes, and decimal megabytes a second by column.
pub(super) const TABLE: [(u32, [f64; 4]); 10] = [
    (10_485_760, [8.44, 8.60, 9.30, 10.27]),
    (1_048_576, [8.48, 8.87, 9.31, 10.34]),
    (524_288, [8.37, 8.42, 9.84, 10.47]),
    (262_144, [8.16, 8.51, 9.52, 10.62]),
    (131_072, [8.48, 8.81, 9.42, 10.55]),
    (65_536, [8.38, 9.09, 9.76, 10.53]),
    (32_768, [8.65, 9.00, 9.57, 10.54]),
    (16_384, [8.27, 8.80, 9.39, 10.43]),
    (8_192, [8.52, 8.70, 9.40, 10.50]),
    (4_096, [8.20, 8.63, 9.80, 10.35]),
];

/// The machine of [`GAINS`]: 10 Gbit/s, a disk of 120 MB/s, `dirty_background_bytes` of 100 MB.
pub(super) const GAINS_OF: (u64, u64, u64) = (10_000_000_000, 120_000_000, 100_000_000);

/// Clients, and the gain of a threshold in bytes over none, in percent.
const GAINS: [(u64, f64); 7] = [(1, 19.83), (2, 2.97), (3, 2.01), (10, 0.25), (20, 0.23), (30, 0.13), (100, -0.60)];

/// The published gain of that threshold with so many clients.
pub(super) fn gain_percent(clients: u64) -> Option<f64> {
    GAINS.iter().find(|(of, _)| *of == clients).map(|(_, gain)| *gain)
}

/// The seed's figure for these parameters, if it has one.
pub(super) fn rate(centisecs: u64, record_bytes: u32) -> Option<f64> {
    let column = CENTISECS.iter().position(|column| *column == centisecs)?;
    TABLE.iter().find(|(record, _)| *record == record_bytes).map(|(_, row)| row[column])
}

/// A published figure of a threshold; there is none for other thresholds.
pub(super) fn of<T>(threshold: Threshold, by_centisecs: impl FnOnce(u64) -> Option<T>) -> Option<T> {
    match threshold {
        Threshold::Centisecs(centisecs) => by_centisecs(centisecs),
        Threshold::Bytes(_) | Threshold::Tuned => None,
    }
}

/// The mean of a column over those of these records that the table has.
pub(super) fn mean(centisecs: u64, records: &[u32]) -> Option<f64> {
    let found: Vec<f64> = records.iter().filter_map(|record| rate(centisecs, *record)).collect();
    (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
}

/// The published mean of a column, if the plan is the seed's.
pub(super) fn mean_rate(plan: &Plan, threshold: Threshold) -> Fields {
    let mean = of(threshold, |centisecs| mean(centisecs, &plan.records)).filter(|_| plan.is_published);
    mean.map_or_else(Fields::new, |mean| Fields::new().with("rate_mb_per_s", mean))
}
