//! The statuses of NFS that tests name: those of version 3, most of which version 4 shares (RFC 1813, section 2.6).
//!
//! Owns: their numbers.
//! Does not own: which procedure may answer with which.
#![allow(missing_docs, reason = "named as in RFC 1813")]

pub const PERM: u32 = 1;
pub const NOENT: u32 = 2;
pub const ACCES: u32 = 13;
pub const EXIST: u32 = 17;
pub const XDEV: u32 = 18;
pub const NOTDIR: u32 = 20;
pub const ISDIR: u32 = 21;
pub const INVAL: u32 = 22;
pub const FBIG: u32 = 27;
pub const NOSPC: u32 = 28;
pub const ROFS: u32 = 30;
pub const MLINK: u32 = 31;
pub const NAMETOOLONG: u32 = 63;
pub const NOTEMPTY: u32 = 66;
pub const STALE: u32 = 70;
pub const BADHANDLE: u32 = 10_001;
pub const NOT_SYNC: u32 = 10_002;
pub const BAD_COOKIE: u32 = 10_003;
pub const TOOSMALL: u32 = 10_005;
pub const BADTYPE: u32 = 10_007;
