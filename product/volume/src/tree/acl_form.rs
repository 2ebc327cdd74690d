//! The form of an access control list as an extended attribute, which Linux takes and gives (acl(5)).
//!
//! Owns: its numbers. A list is the version, in four bytes, and then entries: a tag and rights of two bytes each, and
//! the number of a user or group of four bytes. All numbers are little-endian.
//! Does not own: the names of the attributes (`directory`), the meaning of a list.
//! Invariants: the tags are those of Linux, and rise in the order that a list has.

/// The version.
pub const VERSION: u32 = 2;
/// Bytes of an entry.
pub const ENTRY_BYTES: usize = 8;
/// The number in an entry that needs none. No user has it.
pub const NO_ID: u32 = u32::MAX;

/// The kinds of entries.
pub mod tag {
    /// The owner.
    pub const USER_OBJ: u16 = 0x01;
    /// A user.
    pub const USER: u16 = 0x02;
    /// The group of the object.
    pub const GROUP_OBJ: u16 = 0x04;
    /// A group.
    pub const GROUP: u16 = 0x08;
    /// The bound on all groups and named users.
    pub const MASK: u16 = 0x10;
    /// All others.
    pub const OTHER: u16 = 0x20;
}
