//! The kernel's interface (`fuse_kernel.h`, 7.45): its numbers, and the fields of messages.
//!
//! Owns: operations, flags, error numbers; fixed-size numbers in the machine's own byte order, names that end with a
//! NUL, the check of every length.
//! Does not own: the layout of messages (`request`, `reply`), the meaning of a field.
//! Invariants: only numbers that the machine uses or names are here. Reading allocates nothing and never panics, for
//! any bytes.

/// The protocol's major version.
pub(crate) const MAJOR: u32 = 7;
/// The newest minor version whose layouts the machine has.
pub(crate) const MINOR: u32 = 45;
/// The oldest minor version that the machine talks to: later ones have one size of INIT's answer.
pub(crate) const MINOR_OLDEST: u32 = 23;

/// The bit of a request's number if the kernel sends the request again, after NOTIFY_RESEND.
pub(crate) const UNIQUE_RESENT: u64 = 1 << 63;

/// The node number of the mount's root.
pub(crate) const ROOT: u64 = 1;

macro_rules! opcodes {
    ($($name:ident $number:literal $counter:literal;)*) => {
        /// The operations' numbers.
        #[allow(dead_code, reason = "operations that are refused have a number and a counter, too")]
        pub(crate) mod op {
            $(pub(crate) const $name: u32 = $number;)*
        }

        /// The number and the name of each operation, as a counter.
        pub(crate) const OPERATIONS: &[(u32, &str)] = &[$(($number, $counter),)*];
    };
}

opcodes! {
    LOOKUP 1 "fuse_lookup";
    FORGET 2 "fuse_forget";
    GETATTR 3 "fuse_getattr";
    SETATTR 4 "fuse_setattr";
    READLINK 5 "fuse_readlink";
    SYMLINK 6 "fuse_symlink";
    MKNOD 8 "fuse_mknod";
    MKDIR 9 "fuse_mkdir";
    UNLINK 10 "fuse_unlink";
    RMDIR 11 "fuse_rmdir";
    RENAME 12 "fuse_rename";
    LINK 13 "fuse_link";
    OPEN 14 "fuse_open";
    READ 15 "fuse_read";
    WRITE 16 "fuse_write";
    STATFS 17 "fuse_statfs";
    RELEASE 18 "fuse_release";
    FSYNC 20 "fuse_fsync";
    SETXATTR 21 "fuse_setxattr";
    GETXATTR 22 "fuse_getxattr";
    LISTXATTR 23 "fuse_listxattr";
    REMOVEXATTR 24 "fuse_removexattr";
    FLUSH 25 "fuse_flush";
    INIT 26 "fuse_init";
    OPENDIR 27 "fuse_opendir";
    READDIR 28 "fuse_readdir";
    RELEASEDIR 29 "fuse_releasedir";
    FSYNCDIR 30 "fuse_fsyncdir";
    GETLK 31 "fuse_getlk";
    SETLK 32 "fuse_setlk";
    SETLKW 33 "fuse_setlkw";
    ACCESS 34 "fuse_access";
    CREATE 35 "fuse_create";
    INTERRUPT 36 "fuse_interrupt";
    BMAP 37 "fuse_bmap";
    DESTROY 38 "fuse_destroy";
    IOCTL 39 "fuse_ioctl";
    POLL 40 "fuse_poll";
    BATCH_FORGET 42 "fuse_batch_forget";
    FALLOCATE 43 "fuse_fallocate";
    READDIRPLUS 44 "fuse_readdirplus";
    RENAME2 45 "fuse_rename2";
    LSEEK 46 "fuse_lseek";
    COPY_FILE_RANGE 47 "fuse_copy_file_range";
    SYNCFS 50 "fuse_syncfs";
    TMPFILE 51 "fuse_tmpfile";
    STATX 52 "fuse_statx";
}

/// Flags of INIT.
pub(crate) mod init {
    pub(crate) const ASYNC_READ: u64 = 1 << 0;
    pub(crate) const POSIX_LOCKS: u64 = 1 << 1;
    pub(crate) const ATOMIC_O_TRUNC: u64 = 1 << 3;
    pub(crate) const BIG_WRITES: u64 = 1 << 5;
    pub(crate) const DONT_MASK: u64 = 1 << 6;
    pub(crate) const FLOCK_LOCKS: u64 = 1 << 10;
    pub(crate) const AUTO_INVAL_DATA: u64 = 1 << 12;
    pub(crate) const DO_READDIRPLUS: u64 = 1 << 13;
    pub(crate) const READDIRPLUS_AUTO: u64 = 1 << 14;
    pub(crate) const ASYNC_DIO: u64 = 1 << 15;
    pub(crate) const PARALLEL_DIROPS: u64 = 1 << 18;
    pub(crate) const POSIX_ACL: u64 = 1 << 20;
    pub(crate) const ABORT_ERROR: u64 = 1 << 21;
    pub(crate) const MAX_PAGES: u64 = 1 << 22;
    pub(crate) const CACHE_SYMLINKS: u64 = 1 << 23;
    pub(crate) const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
    pub(crate) const SETXATTR_EXT: u64 = 1 << 29;
    pub(crate) const INIT_EXT: u64 = 1 << 30;
    pub(crate) const CREATE_SUPP_GROUP: u64 = 1 << 34;
    pub(crate) const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
    pub(crate) const HAS_RESEND: u64 = 1 << 39;

    /// Each where the kernel offers it. WRITEBACK_CACHE is missing on purpose: sizes and times would be the kernel's,
    /// and writes would pass our budget. SPLICE_* would move memory that is our frames'. PASSTHROUGH goes past the
    /// cache. HAS_EXPIRE_ONLY has no user here yet.
    pub(crate) const WANTED: u64 = ASYNC_READ
        | ATOMIC_O_TRUNC
        | BIG_WRITES
        | DONT_MASK
        | DO_READDIRPLUS
        | READDIRPLUS_AUTO
        | ASYNC_DIO
        | PARALLEL_DIROPS
        | POSIX_ACL
        | ABORT_ERROR
        | MAX_PAGES
        | CACHE_SYMLINKS
        | HANDLE_KILLPRIV_V2
        | SETXATTR_EXT
        | INIT_EXT
        | CREATE_SUPP_GROUP
        | DIRECT_IO_ALLOW_MMAP;

    /// If the kernel caches bytes, too: it drops those of a file whose size or time changed.
    pub(crate) const WANTED_TO_KEEP: u64 = AUTO_INVAL_DATA;

    /// If others lock the same files, too. Otherwise the kernel's own locks within the mount are faster.
    pub(crate) const WANTED_TO_LOCK: u64 = POSIX_LOCKS | FLOCK_LOCKS;

    /// If the mount outlives its server, too.
    pub(crate) const WANTED_TO_OUTLIVE: u64 = HAS_RESEND;
}

/// Flags of an opened file.
pub(crate) mod open {
    pub(crate) const DIRECT_IO: u32 = 1 << 0;
    pub(crate) const KEEP_CACHE: u32 = 1 << 1;
    pub(crate) const NOFLUSH: u32 = 1 << 5;
    pub(crate) const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// Flags of open(2), as Linux passes them.
pub(crate) mod o {
    pub(crate) const ACCMODE: u32 = 0o3;
    pub(crate) const RDONLY: u32 = 0;
    pub(crate) const WRONLY: u32 = 1;
    pub(crate) const RDWR: u32 = 2;
    /// The kernel's own: it runs the file.
    pub(crate) const EXECUTES: u32 = 0o40;
    pub(crate) const EXCL: u32 = 0o200;
    pub(crate) const TRUNC: u32 = 0o1000;
    pub(crate) const APPEND: u32 = 0o2000;
    /// O_DSYNC, and the further bit of O_SYNC.
    pub(crate) const SYNC: u32 = 0o4_010_000;
}

/// The fields that SETATTR sets.
pub(crate) mod set {
    pub(crate) const MODE: u32 = 1 << 0;
    pub(crate) const UID: u32 = 1 << 1;
    pub(crate) const GID: u32 = 1 << 2;
    pub(crate) const SIZE: u32 = 1 << 3;
    pub(crate) const ATIME: u32 = 1 << 4;
    pub(crate) const MTIME: u32 = 1 << 5;
    pub(crate) const FH: u32 = 1 << 6;
    pub(crate) const ATIME_NOW: u32 = 1 << 7;
    pub(crate) const MTIME_NOW: u32 = 1 << 8;
}

/// Flags of SETXATTR, as Linux passes them.
pub(crate) mod xattr {
    pub(crate) const CREATE: u32 = 1 << 0;
    pub(crate) const REPLACE: u32 = 1 << 1;
    /// A new access control list takes the setgid bit away.
    pub(crate) const ACL_KILL_SGID: u32 = 1 << 0;
}

/// Kinds of locks, as Linux passes them.
pub(crate) mod lock {
    pub(crate) const SHARED: u32 = 0;
    pub(crate) const EXCLUSIVE: u32 = 1;
    pub(crate) const NONE: u32 = 2;
    /// The lock is one of `flock`.
    pub(crate) const OF_FLOCK: u32 = 1 << 0;
    /// RELEASE ends the lock of `flock`.
    pub(crate) const RELEASED: u32 = 1 << 1;
    /// The kernel's offset of the last byte of a lock without an end.
    pub(crate) const LAST: u64 = i64::MAX as u64;
}

/// What LSEEK searches for, as Linux passes it.
pub(crate) mod seek {
    pub(crate) const DATA: u32 = 3;
    pub(crate) const HOLE: u32 = 4;
}

/// Messages to the kernel that are no replies.
pub(crate) mod notify {
    pub(crate) const INVAL_INODE: i32 = 2;
    pub(crate) const INVAL_ENTRY: i32 = 3;
    /// The kernel forgets nodes that no program uses.
    pub(crate) const PRUNE: i32 = 9;
    /// The first minor version with PRUNE.
    pub(crate) const MINOR_OF_PRUNE: u32 = 45;
    /// The kernel sends again the requests that a server has taken and not answered.
    pub(crate) const RESEND: i32 = 7;
}

/// The modes of FALLOCATE, as Linux passes them.
pub(crate) mod falloc {
    pub(crate) const KEEP_SIZE: u32 = 1 << 0;
    pub(crate) const PUNCH_HOLE: u32 = 1 << 1;
    pub(crate) const ZERO_RANGE: u32 = 1 << 4;
}

/// A WRITE of mapped pages: its offset counts.
pub(crate) const WRITE_CACHE: u32 = 1 << 0;
/// FSYNC is for the data alone.
pub(crate) const FSYNC_DATA_ONLY: u32 = 1 << 0;
/// GETATTR names an open file.
pub(crate) const GETATTR_FH: u32 = 1 << 0;

/// The extension of a request with the caller's group that owns the directory.
pub(crate) const EXTENSION_GROUPS: u32 = 32;

/// The kinds in a mode.
pub(crate) mod kind {
    pub(crate) const MASK: u32 = 0o170_000;
    pub(crate) const FIFO: u32 = 0o010_000;
    pub(crate) const CHAR: u32 = 0o020_000;
    pub(crate) const DIRECTORY: u32 = 0o040_000;
    pub(crate) const BLOCK: u32 = 0o060_000;
    pub(crate) const REGULAR: u32 = 0o100_000;
    pub(crate) const LINK: u32 = 0o120_000;
    pub(crate) const SOCKET: u32 = 0o140_000;
}

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    /// The message ends inside a field.
    #[error("the message ends inside a field")]
    Truncated,
    /// A name has no end.
    #[error("a name has no NUL at its end")]
    Unended,
}

/// Reads fields in order.
pub(crate) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(u16::from_ne_bytes(self.fixed()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(u32::from_ne_bytes(self.fixed()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, WireError> {
        Ok(u64::from_ne_bytes(self.fixed()?))
    }

    /// The bytes before the next NUL, which is taken, too.
    pub(crate) fn name(&mut self) -> Result<&'a [u8], WireError> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(WireError::Unended)?;
        let name = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Ok(name)
    }

    /// The remaining bytes.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// Fields that can be appended.
pub(crate) trait Put {
    fn raw(&mut self, bytes: &[u8]);

    fn u16(&mut self, value: u16) {
        self.raw(&value.to_ne_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.raw(&value.to_ne_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.raw(&value.to_ne_bytes());
    }
}

impl Put for Vec<u8> {
    fn raw(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests;
