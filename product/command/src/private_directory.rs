//! Directories of this user alone: for state, control sockets and the governor's journal.
//!
//! Owns: making and checking them, with all parts of the path; how files in them are read, made and replaced.
//! Does not own: the names and contents of the files.
//! Invariants: no other user but root can have put a link, a directory or a file into a checked path. A file is made
//! under a name that was free, and no link at its name is followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::process;

use rustix::fs::{Access, CWD, FsWord, Mode, OFlags, PROC_SUPER_MAGIC, access, mkdirat, statfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use afflux_report::output;

/// Most symbolic links on a path, as in the kernel.
const LINKS_MAX: usize = 40;

/// Most bytes of a file with text.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The file systems in which nobody makes a name: /proc and /sys, with the kernel's answers to mkdir.
const KERNEL_TABLES: [(FsWord, Errno); 2] = [(PROC_SUPER_MAGIC, Errno::NOENT), (0x6265_6572, Errno::PERM)];

/// What to do where a part of the path is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    /// It is made, closed to others.
    Make,
    /// Nothing is made: the rest of the path is taken for right if it could be made.
    Leave,
}

/// Why a directory cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Another user could have put something into the path.
    Unsafe(String),
    /// The host does not let this user make it or read it.
    Closed(String),
}

impl Refused {
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Unsafe(reason) | Self::Closed(reason) => reason,
        }
    }
}

/// Checks the directory, and makes it if it is `missing`. An error says which part of the path others could change.
pub(crate) fn check(path: &Path, missing: Missing) -> Result<(), Refused> {
    match way(path, missing)? {
        Some(directory) => check_own(&directory),
        None => Ok(()),
    }
}

/// Checks all parts of the path, but not whose the directory at its end is. Returns that, free of links, if it is
/// there.
pub(crate) fn way(path: &Path, missing: Missing) -> Result<Option<PathBuf>, Refused> {
    let absolute = std::path::absolute(path).map_err(|error| at(path, &error))?;
    let mut left: VecDeque<OsString> = parts(&absolute);
    let (mut reached, mut links) = (PathBuf::from("/"), 0);
    while let Some(part) = left.pop_front() {
        if part == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&part);
        let found = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::Leave => {
                return check_makable(&next).map(|()| None);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make(&next)?;
                fs::symlink_metadata(&next)
            }
            found => found,
        };
        let found = found.map_err(|error| at(&next, &error))?;
        if !is_trusted(found.uid()) {
            let what = if found.is_symlink() { "is a symbolic link of" } else { "belongs to" };
            return Err(Refused::Unsafe(format!("{} {what} user {}", output::shown(next.display()), found.uid())));
        }
        if found.is_symlink() {
            links += 1;
            if links > LINKS_MAX {
                return Err(Refused::Closed(format!("{} has too many symbolic links", output::shown(path.display()))));
            }
            let target = fs::read_link(&next).map_err(|error| at(&next, &error))?;
            if target.is_absolute() {
                reached = PathBuf::from("/");
            }
            parts(&target).into_iter().rev().for_each(|part| left.push_front(part));
            continue;
        }
        if !found.is_dir() {
            return Err(Refused::Closed(format!("{} is not a directory", output::shown(next.display()))));
        }
        // In a directory with the sticky bit, others cannot replace what is ours.
        if found.mode() & 0o002 != 0 && found.mode() & 0o1000 == 0 {
            let shown = output::shown(next.display());
            return Err(Refused::Unsafe(format!("{shown} is open to others: every user may change files in it")));
        }
        reached = next;
    }
    Ok(Some(reached))
}

/// The last directory must be this user's, and others may not make files in it.
fn check_own(directory: &Path) -> Result<(), Refused> {
    let found = fs::metadata(directory).map_err(|error| at(directory, &error))?;
    let shown = output::shown(directory.display());
    if found.uid() != geteuid().as_raw() {
        return Err(Refused::Unsafe(format!("{shown} belongs to user {}", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        let remedy = format!("`chmod go-w {shown}` if they have left nothing in it");
        return Err(Refused::Unsafe(format!("others may make files in {shown} ({remedy})")));
    }
    Ok(())
}

/// The names of a path, with `..` for a step up.
fn parts(path: &Path) -> VecDeque<OsString> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

fn make(path: &Path) -> Result<(), Refused> {
    match mkdirat(CWD, path, Mode::RWXU) {
        // Another process of this user was faster, or the next check shows whose it is.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(at(path, &errno.into())),
    }
}

/// Finds what would prevent this user from making the path.
fn check_makable(path: &Path) -> Result<(), Refused> {
    check_names_change(path).map_err(|errno| at(path, &errno.into()))
}

/// Finds what would prevent [`replace`] from replacing this file, without a change. A missing directory is one that
/// will be made.
///
/// # Errors
/// Those of the attempt.
pub(crate) fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Err(Errno::ISDIR.into()),
        _ => check_names_change(path).or_else(|errno| if errno == Errno::NOENT { Ok(()) } else { Err(errno.into()) }),
    }
}

/// Finds what would prevent this user from changing names in the directory of the path.
fn check_names_change(path: &Path) -> Result<(), Errno> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    access(parent, Access::WRITE_OK | Access::EXEC_OK)?;
    // There, the kernel tells root that it may.
    let found = statfs(parent)?.f_type;
    KERNEL_TABLES.iter().find(|(magic, _)| *magic == found).map_or(Ok(()), |(_, errno)| Err(*errno))
}

fn at(path: &Path, error: &io::Error) -> Refused {
    Refused::Closed(format!("{}: {error}", output::shown(path.display())))
}

/// Reads a file of a checked directory.
///
/// # Errors
/// The host's; a link, another kind of file, another user's.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no text");
    String::from_utf8(read_bytes(path, FILE_BYTES_MAX)?).map_err(no_text)
}

fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || !is_trusted(found.uid()) {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is not a regular file of this user"));
    }
    if found.len() > most {
        return Err(io::Error::other(format!("it has {} bytes, more than {most}", found.len())));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Replaces a file of a checked directory with a whole new one, durably.
///
/// # Errors
/// When that fails; the old file may then be there, or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, &[text.as_bytes(), b"\n"])
}

/// As [`replace`], with these bytes one after the other.
fn replace_bytes(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let new = beside(path, "new");
    let written = (|| {
        let mut file = made(&new)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        sync_directory_of(path)
    })();
    if written.is_err() {
        // The file may not exist.
        let _ = fs::remove_file(&new);
    }
    written
}

/// Takes a file that another process has written, of `most` bytes at most, and removes it durably. None without a file.
/// If several processes try at the same moment, one of them gets the file.
///
/// # Errors
/// When the file cannot be read, or not be removed durably. It may be there for a later process then.
pub(crate) fn take(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let taken = beside(path, "taken");
    match fs::rename(path, &taken) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        renamed => renamed?,
    }
    let bytes = read_bytes(&taken, most);
    fs::remove_file(&taken).and_then(|()| sync_directory_of(path))?;
    bytes.map(Some)
}

/// Leaves a file for the next process to take.
///
/// # Errors
/// When it cannot be made durable. It must not be found later then, and is removed.
pub(crate) fn leave(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    replace_bytes(path, parts).inspect_err(|_| drop(fs::remove_file(path)))
}

/// The path in an environment variable, unless it is a relative one.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// A new file. A file of an earlier process with the same number is removed first; a link is removed, not followed.
fn made(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(path)
}

/// A name beside a file that only this process uses.
fn beside(path: &Path, what: &str) -> PathBuf {
    path.with_extension(format!("{what}-{}", process::id()))
}

/// Makes the names in a file's directory durable.
///
/// # Errors
/// The host's.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().ok_or(ErrorKind::NotFound)?;
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
