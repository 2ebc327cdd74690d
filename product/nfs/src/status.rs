//! Status codes of NFS (RFC 1813, section 2.6; RFC 8881, section 15.1) and of MOUNT (RFC 1813, section 5.1.5).
//!
//! Owns: the codes, their names for counters, and the code of each error of a volume.
//! Does not own: errors themselves, and when they happen; which procedure may return a code (`permitted`).
//! Invariants: a call that cannot run now waits; the client is not told to come back (libnfs fails, Finder blocks).
//! `JUKEBOX` is used only if a program of the host keeps a lease on the file, which may last long and delay other
//! calls. No error is silently a success.

use afflux_volume::VolumeError;

macro_rules! statuses {
    ($($variant:ident $code:literal $name:literal;)*) => {
        /// A status of an NFS procedure.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Status {
            $($variant,)*
        }

        impl Status {
            /// All statuses, in the order of their codes.
            pub(crate) const ALL: &[Status] = &[$(Status::$variant,)*];

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
    Ok 0 "nfs_ok";
    NotPermitted 1 "nfserr_perm";
    NotFound 2 "nfserr_noent";
    Io 5 "nfserr_io";
    PastEnd 6 "nfserr_nxio";
    Denied 13 "nfserr_acces";
    Exists 17 "nfserr_exist";
    CrossDevice 18 "nfserr_xdev";
    NotDirectory 20 "nfserr_notdir";
    IsDirectory 21 "nfserr_isdir";
    Invalid 22 "nfserr_inval";
    TooLarge 27 "nfserr_fbig";
    NoSpace 28 "nfserr_nospc";
    ReadOnly 30 "nfserr_rofs";
    TooManyLinks 31 "nfserr_mlink";
    NameTooLong 63 "nfserr_nametoolong";
    NotEmpty 66 "nfserr_notempty";
    Quota 69 "nfserr_dquot";
    Stale 70 "nfserr_stale";
    BadHandle 10001 "nfserr_badhandle";
    NotSynchronised 10002 "nfserr_not_sync";
    BadCookie 10003 "nfserr_bad_cookie";
    NotSupported 10004 "nfserr_notsupp";
    TooSmall 10005 "nfserr_toosmall";
    ServerFault 10006 "nfserr_serverfault";
    BadType 10007 "nfserr_badtype";
    Jukebox 10008 "nfserr_jukebox";
    Same 10009 "nfserr_same";
    LockDenied 10010 "nfserr_denied";
    Locked 10012 "nfserr_locked";
    Grace 10013 "nfserr_grace";
    ShareDenied 10015 "nfserr_share_denied";
    ClientIdInUse 10017 "nfserr_clid_inuse";
    NoFileHandle 10020 "nfserr_nofilehandle";
    MinorVersionMismatch 10021 "nfserr_minor_vers_mismatch";
    StaleClientId 10022 "nfserr_stale_clientid";
    OldStateid 10024 "nfserr_old_stateid";
    BadStateid 10025 "nfserr_bad_stateid";
    NotSame 10027 "nfserr_not_same";
    SymbolicLink 10029 "nfserr_symlink";
    AttributeNotSupported 10032 "nfserr_attrnotsupp";
    NoGrace 10033 "nfserr_no_grace";
    BadXdr 10036 "nfserr_badxdr";
    LocksHeld 10037 "nfserr_locks_held";
    OpenMode 10038 "nfserr_openmode";
    BadOwner 10039 "nfserr_badowner";
    BadCharacter 10040 "nfserr_badchar";
    BadName 10041 "nfserr_badname";
    OperationIllegal 10044 "nfserr_op_illegal";
    Deadlock 10045 "nfserr_deadlock";
    BadSession 10052 "nfserr_badsession";
    BadSlot 10053 "nfserr_badslot";
    CompleteAlready 10054 "nfserr_complete_already";
    SequenceMisordered 10063 "nfserr_seq_misordered";
    SequencePosition 10064 "nfserr_sequence_pos";
    RequestTooBig 10065 "nfserr_req_too_big";
    ReplyTooBig 10066 "nfserr_rep_too_big";
    ReplyTooBigToCache 10067 "nfserr_rep_too_big_to_cache";
    RetryUncachedReply 10068 "nfserr_retry_uncached_rep";
    TooManyOperations 10070 "nfserr_too_many_ops";
    OperationNotInSession 10071 "nfserr_op_not_in_session";
    ClientIdBusy 10074 "nfserr_clientid_busy";
    SequenceFalseRetry 10076 "nfserr_seq_false_retry";
    BadHighSlot 10077 "nfserr_bad_high_slot";
    NotOnlyOperation 10081 "nfserr_not_only_op";
    WrongType 10083 "nfserr_wrong_type";
    UnionNotSupported 10090 "nfserr_union_notsupp";
    NoXattr 10095 "nfserr_noxattr";
    XattrTooBig 10096 "nfserr_xattr2big";
}

impl From<&VolumeError> for Status {
    fn from(error: &VolumeError) -> Self {
        match error {
            VolumeError::NotFound => Self::NotFound,
            VolumeError::Exists => Self::Exists,
            VolumeError::NotDirectory => Self::NotDirectory,
            VolumeError::IsDirectory => Self::IsDirectory,
            VolumeError::NotEmpty => Self::NotEmpty,
            VolumeError::Denied => Self::Denied,
            VolumeError::NotPermitted => Self::NotPermitted,
            VolumeError::Io { .. } => Self::Io,
            VolumeError::NoSpace => Self::NoSpace,
            VolumeError::Quota => Self::Quota,
            VolumeError::TooLarge => Self::TooLarge,
            VolumeError::ReadOnly => Self::ReadOnly,
            VolumeError::Stale => Self::Stale,
            VolumeError::BadHandle => Self::BadHandle,
            VolumeError::NameTooLong { .. } => Self::NameTooLong,
            VolumeError::Invalid { .. } | VolumeError::Symlink => Self::Invalid,
            VolumeError::CrossDevice => Self::CrossDevice,
            VolumeError::TooManyLinks => Self::TooManyLinks,
            VolumeError::NotSupported => Self::NotSupported,
            VolumeError::NotSynchronised => Self::NotSynchronised,
            VolumeError::BadCookie => Self::BadCookie,
            VolumeError::Leased | VolumeError::Delayed | VolumeError::NoDescriptor => Self::Jukebox,
            VolumeError::NoAttribute => Self::NoXattr,
            VolumeError::ValueTooLong { .. } => Self::XattrTooBig,
            // Out of memory, and errors that a volume may have in the future.
            _ => Self::ServerFault,
        }
    }
}

impl From<VolumeError> for Status {
    fn from(error: VolumeError) -> Self {
        Self::from(&error)
    }
}

impl From<Result<(), VolumeError>> for Status {
    fn from(result: Result<(), VolumeError>) -> Self {
        result.map_or_else(Self::from, |()| Self::Ok)
    }
}

impl Status {
    /// The status with this number.
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|status| status.code() == code)
    }

    /// The nearest code of MOUNT; codes that both have share their number.
    pub(crate) fn mount_code(self) -> u32 {
        match self {
            Self::Ok
            | Self::NotPermitted
            | Self::NotFound
            | Self::Io
            | Self::Denied
            | Self::NotDirectory
            | Self::Invalid
            | Self::NameTooLong
            | Self::NotSupported
            | Self::ServerFault => self.code(),
            Self::Stale => Self::NotFound.code(),
            _ => Self::ServerFault.code(),
        }
    }
}
