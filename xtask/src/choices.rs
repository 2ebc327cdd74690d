//! Words of which one is chosen.
//!
//! Owns: their types.
//! Does not own: their meaning.
//! Invariants: none.

use afflux_rig::choice;

choice! {
    /// A kind of store: a directory, or a Ceph.
    pub(crate) Store { File = "file", Radosgw = "radosgw" }
}

choice! {
    /// A sanitizer of the compiler.
    pub(crate) Sanitizer { Address = "address", Thread = "thread" }
}

choice! {
    /// A load that `tests/guest/law/load.py` knows, or the copy of `copy.py`.
    pub(crate) Load { Stream = "stream", AtRate = "at-rate", SmallSync = "small-sync", Burst = "burst", Copy = "copy" }
}

choice! {
    /// A server of NFS: Linux's own, or ours.
    pub(crate) Server { Knfsd = "knfsd", Afflux = "afflux" }
}
