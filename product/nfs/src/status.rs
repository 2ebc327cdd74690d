//! Status codes of NFS (RFC 1813, section 2.6; RFC 8881, section 15.1) and of MOUNT (RFC 1813, section 5.1.5).
//!
//! Owns: the codes, their names for counters, and the code of each error of a volume.
//! Does not own: errors themselves, and when they happen; which procedure may return a code (`permitted`).
//! Invariants: a call that cannot run now waits; the server does not ask the client to come back (libnfs fails, Finder
//! blocks). `NFS4ERR_DELAY` is used only if a program of the host holds a lease on the file, or a client a delegation,
//! which may last long and delay other calls. No error is silently a success.

use afflux_volume::VolumeError;

macro_rules! statuses {
    ($($variant:ident $code:literal $rfc:literal $name:literal;)*) => {
        /// A status of an NFS procedure.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum NfsStatus {
            $(#[doc = $rfc] $variant,)*
        }

        impl NfsStatus {
            /// All statuses, in the order of their codes.
            pub(crate) const ALL: &[NfsStatus] = &[$(NfsStatus::$variant,)*];

            /// Its number on the wire.
            pub(crate) fn code(self) -> u32 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// Its name as a counter.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

statuses! {
    Ok 0 "NFS4_OK, NFS3_OK" "nfs_ok";
    Perm 1 "NFS4ERR_PERM" "nfserr_perm";
    Noent 2 "NFS4ERR_NOENT" "nfserr_noent";
    Io 5 "NFS4ERR_IO" "nfserr_io";
    Nxio 6 "NFS4ERR_NXIO" "nfserr_nxio";
    Acces 13 "NFS4ERR_ACCES" "nfserr_acces";
    Exist 17 "NFS4ERR_EXIST" "nfserr_exist";
    Xdev 18 "NFS4ERR_XDEV" "nfserr_xdev";
    Notdir 20 "NFS4ERR_NOTDIR" "nfserr_notdir";
    Isdir 21 "NFS4ERR_ISDIR" "nfserr_isdir";
    Inval 22 "NFS4ERR_INVAL" "nfserr_inval";
    Fbig 27 "NFS4ERR_FBIG" "nfserr_fbig";
    Nospc 28 "NFS4ERR_NOSPC" "nfserr_nospc";
    Rofs 30 "NFS4ERR_ROFS" "nfserr_rofs";
    Mlink 31 "NFS4ERR_MLINK" "nfserr_mlink";
    Nametoolong 63 "NFS4ERR_NAMETOOLONG" "nfserr_nametoolong";
    Notempty 66 "NFS4ERR_NOTEMPTY" "nfserr_notempty";
    Dquot 69 "NFS4ERR_DQUOT" "nfserr_dquot";
    Stale 70 "NFS4ERR_STALE" "nfserr_stale";
    Badhandle 10001 "NFS3ERR_BADHANDLE, NFS4ERR_BADHANDLE" "nfserr_badhandle";
    NotSync 10002 "NFS3ERR_NOT_SYNC" "nfserr_not_sync";
    BadCookie 10003 "NFS4ERR_BAD_COOKIE" "nfserr_bad_cookie";
    Notsupp 10004 "NFS4ERR_NOTSUPP" "nfserr_notsupp";
    Toosmall 10005 "NFS4ERR_TOOSMALL" "nfserr_toosmall";
    Serverfault 10006 "NFS4ERR_SERVERFAULT" "nfserr_serverfault";
    Badtype 10007 "NFS4ERR_BADTYPE" "nfserr_badtype";
    Delay 10008 "NFS4ERR_DELAY, NFS3ERR_JUKEBOX" "nfserr_jukebox";
    Same 10009 "NFS4ERR_SAME" "nfserr_same";
    Denied 10010 "NFS4ERR_DENIED" "nfserr_denied";
    Locked 10012 "NFS4ERR_LOCKED" "nfserr_locked";
    Grace 10013 "NFS4ERR_GRACE" "nfserr_grace";
    ShareDenied 10015 "NFS4ERR_SHARE_DENIED" "nfserr_share_denied";
    ClidInuse 10017 "NFS4ERR_CLID_INUSE" "nfserr_clid_inuse";
    Nofilehandle 10020 "NFS4ERR_NOFILEHANDLE" "nfserr_nofilehandle";
    MinorVersMismatch 10021 "NFS4ERR_MINOR_VERS_MISMATCH" "nfserr_minor_vers_mismatch";
    StaleClientid 10022 "NFS4ERR_STALE_CLIENTID" "nfserr_stale_clientid";
    OldStateid 10024 "NFS4ERR_OLD_STATEID" "nfserr_old_stateid";
    BadStateid 10025 "NFS4ERR_BAD_STATEID" "nfserr_bad_stateid";
    NotSame 10027 "NFS4ERR_NOT_SAME" "nfserr_not_same";
    Symlink 10029 "NFS4ERR_SYMLINK" "nfserr_symlink";
    Attrnotsupp 10032 "NFS4ERR_ATTRNOTSUPP" "nfserr_attrnotsupp";
    NoGrace 10033 "NFS4ERR_NO_GRACE" "nfserr_no_grace";
    Badxdr 10036 "NFS4ERR_BADXDR" "nfserr_badxdr";
    LocksHeld 10037 "NFS4ERR_LOCKS_HELD" "nfserr_locks_held";
    Openmode 10038 "NFS4ERR_OPENMODE" "nfserr_openmode";
    Badowner 10039 "NFS4ERR_BADOWNER" "nfserr_badowner";
    Badchar 10040 "NFS4ERR_BADCHAR" "nfserr_badchar";
    Badname 10041 "NFS4ERR_BADNAME" "nfserr_badname";
    OpIllegal 10044 "NFS4ERR_OP_ILLEGAL" "nfserr_op_illegal";
    Deadlock 10045 "NFS4ERR_DEADLOCK" "nfserr_deadlock";
    Badsession 10052 "NFS4ERR_BADSESSION" "nfserr_badsession";
    Badslot 10053 "NFS4ERR_BADSLOT" "nfserr_badslot";
    CompleteAlready 10054 "NFS4ERR_COMPLETE_ALREADY" "nfserr_complete_already";
    SeqMisordered 10063 "NFS4ERR_SEQ_MISORDERED" "nfserr_seq_misordered";
    SequencePos 10064 "NFS4ERR_SEQUENCE_POS" "nfserr_sequence_pos";
    ReqTooBig 10065 "NFS4ERR_REQ_TOO_BIG" "nfserr_req_too_big";
    RepTooBig 10066 "NFS4ERR_REP_TOO_BIG" "nfserr_rep_too_big";
    RepTooBigToCache 10067 "NFS4ERR_REP_TOO_BIG_TO_CACHE" "nfserr_rep_too_big_to_cache";
    RetryUncachedRep 10068 "NFS4ERR_RETRY_UNCACHED_REP" "nfserr_retry_uncached_rep";
    TooManyOps 10070 "NFS4ERR_TOO_MANY_OPS" "nfserr_too_many_ops";
    OpNotInSession 10071 "NFS4ERR_OP_NOT_IN_SESSION" "nfserr_op_not_in_session";
    ClientidBusy 10074 "NFS4ERR_CLIENTID_BUSY" "nfserr_clientid_busy";
    SeqFalseRetry 10076 "NFS4ERR_SEQ_FALSE_RETRY" "nfserr_seq_false_retry";
    BadHighSlot 10077 "NFS4ERR_BAD_HIGH_SLOT" "nfserr_bad_high_slot";
    NotOnlyOp 10081 "NFS4ERR_NOT_ONLY_OP" "nfserr_not_only_op";
    WrongType 10083 "NFS4ERR_WRONG_TYPE" "nfserr_wrong_type";
    DelegRevoked 10087 "NFS4ERR_DELEG_REVOKED" "nfserr_deleg_revoked";
    UnionNotsupp 10090 "NFS4ERR_UNION_NOTSUPP" "nfserr_union_notsupp";
    Noxattr 10095 "NFS4ERR_NOXATTR" "nfserr_noxattr";
    Xattr2big 10096 "NFS4ERR_XATTR2BIG" "nfserr_xattr2big";
}

impl From<&VolumeError> for NfsStatus {
    fn from(error: &VolumeError) -> Self {
        match error {
            VolumeError::NotFound => Self::Noent,
            VolumeError::Exists => Self::Exist,
            VolumeError::NotDirectory => Self::Notdir,
            VolumeError::IsDirectory => Self::Isdir,
            VolumeError::NotEmpty => Self::Notempty,
            VolumeError::Denied => Self::Acces,
            VolumeError::NotPermitted => Self::Perm,
            VolumeError::Io { .. } => Self::Io,
            VolumeError::NoSpace => Self::Nospc,
            VolumeError::Quota => Self::Dquot,
            VolumeError::TooLarge => Self::Fbig,
            VolumeError::ReadOnly => Self::Rofs,
            VolumeError::Stale => Self::Stale,
            VolumeError::BadHandle => Self::Badhandle,
            VolumeError::NameTooLong { .. } => Self::Nametoolong,
            VolumeError::Invalid { .. } | VolumeError::Symlink => Self::Inval,
            VolumeError::CrossDevice => Self::Xdev,
            VolumeError::TooManyLinks => Self::Mlink,
            VolumeError::NotSupported => Self::Notsupp,
            VolumeError::NotSynchronised => Self::NotSync,
            VolumeError::BadCookie => Self::BadCookie,
            VolumeError::Leased | VolumeError::Delayed | VolumeError::NoDescriptor => Self::Delay,
            VolumeError::NoAttribute => Self::Noxattr,
            VolumeError::ValueTooLong { .. } => Self::Xattr2big,
            // Out of memory, and errors that a volume may have in the future.
            _ => Self::Serverfault,
        }
    }
}

impl From<VolumeError> for NfsStatus {
    fn from(error: VolumeError) -> Self {
        Self::from(&error)
    }
}

impl From<Result<(), VolumeError>> for NfsStatus {
    fn from(result: Result<(), VolumeError>) -> Self {
        result.map_or_else(Self::from, |()| Self::Ok)
    }
}

impl NfsStatus {
    /// The status with this number.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.code() == code)
    }

    /// The nearest code of MOUNT; a code that both have is the same number in both.
    pub(crate) fn mount_code(self) -> u32 {
        match self {
            Self::Ok
            | Self::Perm
            | Self::Noent
            | Self::Io
            | Self::Acces
            | Self::Notdir
            | Self::Inval
            | Self::Nametoolong
            | Self::Notsupp
            | Self::Serverfault => self.code(),
            Self::Stale => Self::Noent.code(),
            _ => Self::Serverfault.code(),
        }
    }
}
