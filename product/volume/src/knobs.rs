//! The volume's knobs.
//!
//! Owns: their table. Does not own: values (the settings; the maker of an engine adds the table to them).
//! Invariants: each knob is read at its use, so that a change needs no restart.

afflux_engine::knobs! {
    /// A knob of the volume.
    VolumeKnob of "volume":

    AttributesIdleCentisecs "attributes_idle_centisecs" 100 in 0..=360000 "centiseconds" Engine NextUse
        "Time that a file must be unused before a lookup asks the host for changes. A looked-up name is remembered for the same time.";
}
