//! Takes back objects that landed outside the exports, or could not be made as requested.
//!
//! Owns: removing or moving back an object without harm to anything of others.
//! Does not own: when this is done (`entries`).
//! Invariants: only an object that was just made, and is still unchanged, is removed: since then another program may
//! have taken the name, or written to the file. So the object is first renamed to a name that no other program knows,
//! and checked there; any other object gets its name back. No step replaces anything.

use std::os::fd::AsFd;

use afflux_volume::{Identity, Kind, New, SpecialKind, Stat};
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::Errno;

use super::Core;
use super::calls;
use super::node::HostNode;
use afflux_linux_device::clock;

/// The object or name that was made.
pub(super) enum CreatedObject<'a> {
    /// A new object; with its identity if that is known for sure.
    Object(&'a New, Option<Identity>),
    /// One more name of an object.
    Name(Identity),
}

impl Core {
    /// Removes an object just made in the directory, wherever the directory is now. If this fails, the object stays,
    /// with the serving user's attributes.
    pub(super) fn take_back(&self, directory: &HostNode, name: &[u8], made: &CreatedObject<'_>) {
        let aside = format!(".afflux-{:016x}{:016x}", clock::random(), clock::random()).into_bytes();
        let aside = match renameat_with(directory.fd(), name, directory.fd(), &aside[..], RenameFlags::NOREPLACE) {
            Ok(()) => &aside[..],
            // The file system cannot rename like this: the object is checked under its own name.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => name,
            Err(_) => return,
        };
        if self.is_created_object(directory, aside, made) {
            let is_directory = matches!(made, CreatedObject::Object(New::Directory, _));
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            if unlinkat(directory.fd(), aside, flags).is_ok() {
                return;
            }
        }
        if aside != name {
            let _ = renameat_with(directory.fd(), aside, directory.fd(), name, RenameFlags::NOREPLACE);
        }
    }

    fn is_created_object(&self, directory: &HostNode, name: &[u8], made: &CreatedObject<'_>) -> bool {
        let Ok(fd) = self.open_entry(directory, name, OFlags::PATH, Mode::empty()) else { return false };
        let Ok((identity, stat)) = self.identify(fd.as_fd()) else { return false };
        match made {
            // A last name stays: other programs have removed the earlier ones.
            CreatedObject::Name(known) => identity == *known && stat.links > 1,
            CreatedObject::Object(new, known) => {
                let link = |target: &[u8]| calls::read_link(fd.as_fd()).is_ok_and(|says| *says == *target);
                known.is_none_or(|known| identity == known)
                    && match new {
                        New::Regular => is_untouched(&stat),
                        New::Directory => stat.kind == Kind::Directory, // An empty one, or it stays.
                        New::Symlink { target } => stat.kind == Kind::Symlink && link(target),
                        New::Special(_) => !matches!(stat.kind, Kind::Regular | Kind::Directory | Kind::Symlink),
                    }
            }
        }
    }

    /// Gives a renamed object its old name back, if it has the new one and the old one is free.
    pub(super) fn move_back(&self, from: (&HostNode, &[u8]), to: (&HostNode, &[u8])) {
        // Another object may have the name now, but the move loses nothing.
        let _ = renameat_with(to.0.fd(), to.1, from.0.fd(), from.1, RenameFlags::NOREPLACE);
    }

    /// Gives a renamed object its old name back, and removes the whiteout that has it.
    pub(super) fn move_back_over(&self, from: (&HostNode, &[u8]), to: (&HostNode, &[u8]), whiteout: Identity) {
        self.exchange_back(from, to);
        let made = New::Special(SpecialKind::CharDevice { major: 0, minor: 0 });
        self.take_back(to.0, to.1, &CreatedObject::Object(&made, Some(whiteout)));
    }

    /// Swaps two names back.
    pub(super) fn exchange_back(&self, from: (&HostNode, &[u8]), to: (&HostNode, &[u8])) {
        // Others may have changed the names since, but the exchange loses nothing.
        let _ = renameat_with(from.0.fd(), from.1, to.0.fd(), to.1, RenameFlags::EXCHANGE);
    }
}

fn is_untouched(stat: &Stat) -> bool {
    stat.kind == Kind::Regular && stat.size == 0 && stat.links == 1
}
