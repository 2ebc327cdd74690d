//! Attributes, extended attributes and access control lists: reading and changing them for clients.
//!
//! Owns: when the host is asked for attributes, the order in which a change acts, the questions about an object's file
//! system.
//! Does not own: callers' rights (`permission`), the values reported (`objects::inode`), sizes (`read_write`),
//! durability (`sync`), times of written files (`coherence`). The host decides about namespaces, lists and rights of
//! extended attributes, as for a program of the caller's user.
//! Invariants: changes of one object are made one at a time, so before and after belong together. No extended attribute
//! is cached, so the host's answer is always the current one. A change of one ends all remembered rights on the object.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use afflux_engine::{FILE_BYTES_MAX, Nanos, Platform};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::objects::inode::Inode;
use crate::objects::inode_state::Times;
use crate::objects::rights::Use;
use crate::tree::attributes::{
    AttributeChange, Attributes, Consistency, Kind, Outcome, SetTime, Stat, Timestamp, without_privileges,
};
use crate::tree::caller::Caller;
use crate::tree::directory::{ChangedAttributes, Joint, Node, PathLimits, Space, Stable, XattrChange, check_name};
use crate::volume::{STOPPED, Volume};

/// The most unwritten bytes of a file that a change of its attributes takes along.
const JOINED_BYTES_MAX: u64 = 64 << 10;

impl<P: Platform> Volume<P> {
    /// The attributes, if they are known without asking the host.
    pub fn try_attributes(&self, inode: &Arc<Inode<P>>) -> Option<Attributes> {
        self.try_attributes_at(inode, self.now())
    }

    /// As [`Volume::try_attributes`], by a caller that has read the clock.
    #[inline]
    pub fn try_attributes_at(&self, inode: &Arc<Inode<P>>, now: Nanos) -> Option<Attributes> {
        inode.used_now();
        inode.fresh_attributes(now, self.idle_ns())
    }

    /// The attributes. Asks the host if the last answer is older than the knob `attributes_idle_centisecs`. It also
    /// asks if a write has reached the host since that answer and nothing of the object is unwritten.
    pub async fn attributes(&self, inode: &Arc<Inode<P>>) -> Result<Attributes, VolumeError> {
        if let Some(attributes) = self.try_attributes(inode) {
            return Ok(attributes);
        }
        self.ask(inode).await?;
        Ok(inode.attributes())
    }

    /// Asks the host about the object, even if the last answer is recent.
    pub(crate) async fn ask(&self, inode: &Arc<Inode<P>>) -> Result<(), VolumeError> {
        if !(inode.needs_settling() && self.try_settle(inode).await) || inode.has_ended() {
            self.check(inode).await?;
        }
        Ok(())
    }

    /// Changes attributes. The change is durable on return, except for bytes that were written and not synced. With a
    /// `guard`, the change is refused unless the change time equals it ([`VolumeError::NotSynchronised`]). A new size
    /// acts first, then owner, mode and times; an error may leave the earlier ones changed. A change that an earlier
    /// process has carried out for the same call is not done again.
    pub async fn set_attributes_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        guard: Option<Timestamp>,
    ) -> Outcome<()> {
        let change_begun = match self.begin_change(caller, inode).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        let (caller, target) = (caller.clone(), Arc::clone(inode));
        let work = |volume: Arc<Self>| async move {
            let _begun = change_begun;
            if let Some(result) = volume.done_before(&caller, &[&target]).await {
                return Outcome { result, consistency: Consistency::default() };
            }
            volume.set_attributes_now(&caller, &target, change, guard).await
        };
        self.carried_through("set attributes", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    /// As [`Volume::set_attributes_by`]; must not be dropped before its end.
    pub(crate) async fn set_attributes_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        guard: Option<Timestamp>,
    ) -> Outcome<()> {
        let known = match change.size {
            // Others may have changed the rest of the last page.
            Some(_) if inode.is_clean() => self.ask(inode).await,
            _ => self.attributes(inode).await.map(drop),
        };
        if let Err(error) = known {
            return Outcome::failed(error);
        }
        let node = match self.check_set(caller, inode, &change).await {
            Ok(node) => node,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        let changing = inode.changing.lock().await;
        // It ends after the change is durable: both have the same request.
        let _joint = self.give_inline_bytes(inode, &change).await;
        let (mut changed, mut stable) = (None, Stable::not_begun());
        let result = match guard {
            Some(expected) if inode.change_time() != expected => Err(VolumeError::NotSynchronised),
            _ => self.apply(&node, caller, inode, change, &mut changed).await.map(|begun| stable = begun),
        };
        if result.is_ok() {
            caller.note_done();
        }
        // Others may have written since: the answer shows the moment of the change.
        let consistency = changed.unwrap_or_else(|| inode.unchanged());
        drop(changing);
        match change.size {
            _ if changed.is_none() => {}
            Some(_) => self.tell_bytes(caller, inode),
            None => self.tell_attributes(caller, inode),
        }
        let result = match result {
            Ok(()) if changed.is_some() => self.made_durable(&[inode], stable).await,
            result => result,
        };
        Outcome { result, consistency }
    }

    /// Refuses changes that the host does not check: the engine sets sizes, with the server's rights. Returns the node
    /// for the rest, which acts as the caller's user or as the server. A client may set one time to the present if its
    /// user may write. The host lets such a user set only both.
    async fn check_set(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        change: &AttributeChange,
    ) -> Result<Node, VolumeError> {
        if *change != AttributeChange::default() {
            self.check_change(caller)?;
        }
        if change.size.is_some() {
            self.permit(inode, caller, Use::Write).await?;
        }
        let by_server = change.is_only_touch() && self.permit(inode, caller, Use::Write).await.is_ok();
        Ok(if by_server { inode.node.clone() } else { inode.node.used_by(caller) })
    }

    /// Applies a change with `changing` held, by a node that has the right to. `changed` becomes the object before and
    /// after the applied part of the change, also after an error. Returns the sync of the whole change, if the tree
    /// began one.
    async fn apply(
        &self,
        node: &Node,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        change: AttributeChange,
        changed: &mut Option<Consistency>,
    ) -> Result<Stable, VolumeError> {
        change.check()?;
        if let Some(size) = change.size {
            *changed = Some(self.set_size(caller, inode, size).await?);
        }
        let rest = AttributeChange { size: None, ..change };
        if rest == AttributeChange::default() {
            return Ok(Stable::not_begun());
        }
        self.write_before_privileges(inode, &rest).await;
        let look = inode.look();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let (told, is_coarse) = (inode.change_time(), inode.has_coarse_times());
        let is_past = |time| if is_coarse { time >= told } else { time > told };
        // A new size becomes durable with the file.
        let begins = self.are_names_durable() && change.size.is_none();
        let ChangedAttributes { stat, stable } = self.set_past(node, rest, begins, |stat| is_past(stat.ctime)).await?;
        let times = Times::Set { atime: rest.atime != SetTime::Keep, mtime: rest.mtime != SetTime::Keep };
        let set = inode.changed(stat, self.now(), times, Some(&look));
        self.settle_later(inode);
        *changed = Some(changed.map_or(set, |before| before.then(set)));
        Ok(stable)
    }

    /// Gives the tree the few unwritten bytes of a file, if it makes them durable with the change. Then the client's
    /// COMMIT waits for nothing, and the bytes are no later than times that the change sets. Called with `changing`
    /// held: the file's syncs wait for the joint, so its holder may wait neither for one nor for a holder of
    /// `changing`.
    async fn give_inline_bytes(&self, inode: &Arc<Inode<P>>, change: &AttributeChange) -> Option<Joint> {
        let is_nothing = change.size.is_some() || *change == AttributeChange::default();
        if !self.are_names_durable() || is_nothing || has_privileges(change) {
            return None;
        }
        let file = inode.writable_file().filter(|file| (1..=JOINED_BYTES_MAX).contains(&file.dirty_bytes()))?;
        let mut joint = self.tree.join(&inode.node)?;
        // The next sync reports the failure of this one. The engine goes on with a sync whose caller leaves.
        let mut sync = pin!(self.engine.sync(file, 0..u64::MAX));
        poll_fn(|cx| if sync.as_mut().poll(cx).is_ready() { Poll::Ready(()) } else { Pin::new(&mut joint).poll(cx) })
            .await;
        Some(joint)
    }

    /// A host may clear a file's privilege bits when we write its bytes. So earlier writes go to the host before the
    /// bits are set. If that fails, the host decides about the bits.
    async fn write_before_privileges(&self, inode: &Arc<Inode<P>>, change: &AttributeChange) {
        let gives = has_privileges(change);
        if let Some(file) = inode.writable_file().filter(|file| gives && !file.is_clean()) {
            let _ = self.engine.sync(file, 0..u64::MAX).await;
        }
    }

    /// Sets attributes on the host, and once more if the host's times are not `past` those reported to clients. A
    /// host's clock ticks some hundred times a second. But many hosts use a finer clock for an object whose attributes
    /// were read since its last change.
    pub(crate) async fn set_past(
        &self,
        node: &Node,
        change: AttributeChange,
        durable: bool,
        past: impl Fn(&Stat) -> bool,
    ) -> Result<ChangedAttributes, VolumeError> {
        let set = self.tree.set(node, change, durable).await?;
        if past(&set.stat) {
            return Ok(set);
        }
        Ok(self.tree.set(node, change, durable).await.unwrap_or(set))
    }

    /// The target of a symbolic link, unchanged; [`VolumeError::Invalid`] for any other object.
    pub async fn read_link(&self, inode: &Arc<Inode<P>>) -> Result<(Bytes, Attributes), VolumeError> {
        if inode.kind() != Kind::Symlink {
            return Err(VolumeError::Invalid { what: "not a symbolic link" });
        }
        let target = self.tree.read_link(&inode.node).await?;
        Ok((target, self.attributes(inode).await?))
    }

    /// The space on the object's file system. Unwritten data is not subtracted.
    pub async fn space(&self, inode: &Arc<Inode<P>>) -> Result<(Space, Attributes), VolumeError> {
        let space = self.tree.space(&inode.node).await?;
        Ok((space, self.attributes(inode).await?))
    }

    /// The largest size of a file on this object's file system; adds its device if needed.
    pub async fn file_bytes_max(&self, inode: &Arc<Inode<P>>) -> u64 {
        let device = self.device(inode.device, &inode.node).await.ok();
        device.and_then(|id| self.engine.file_bytes_max(id)).unwrap_or(FILE_BYTES_MAX)
    }

    /// Whether the file system may take names of different bytes for equal in this directory. A caller then concludes
    /// nothing about one spelling from another.
    pub fn may_fold_names(&self, directory: &Inode<P>) -> bool {
        self.tree.may_fold_names(&directory.node)
    }

    /// The limits on names in the object's file system.
    pub async fn path_limits(&self, inode: &Arc<Inode<P>>) -> Result<(PathLimits, Attributes), VolumeError> {
        let limits = self.tree.path_limits(&inode.node).await?;
        Ok((limits, self.attributes(inode).await?))
    }
}

fn has_privileges(change: &AttributeChange) -> bool {
    change.mode.is_some_and(|mode| without_privileges(mode) != mode)
}

/// The host drops it when it gets bytes of the file.
const CAPABILITY: &[u8] = b"security.capability";

impl<P: Platform> Volume<P> {
    /// The value of an extended attribute; lists of access control are `system.posix_acl_access` and
    /// `system.posix_acl_default`. [`VolumeError::NoAttribute`] if there is none, or none that the caller may see;
    /// [`VolumeError::NotSupported`] if the file system has none of this name's kind.
    pub async fn xattr_by(&self, caller: &Caller, inode: &Arc<Inode<P>>, name: &[u8]) -> Result<Bytes, VolumeError> {
        check_name(name)?;
        let node = self.used(caller, inode)?;
        self.tree.xattr(&node, Bytes::copy_from_slice(name)).await
    }

    /// The names of the extended attributes that the caller may see, in any order.
    pub async fn xattrs_by(&self, caller: &Caller, inode: &Arc<Inode<P>>) -> Result<Vec<Bytes>, VolumeError> {
        let node = self.used(caller, inode)?;
        self.tree.xattrs(&node).await
    }

    /// Changes an extended attribute, as the host allows the caller: `trusted.` and `security.` are
    /// [`VolumeError::NotPermitted`] for all but root. The change is durable on return, and remembered rights are
    /// looked up anew. Further errors: [`VolumeError::Exists`] and [`VolumeError::NoAttribute`] as `change` says,
    /// [`VolumeError::ValueTooLong`], [`VolumeError::NoSpace`], [`VolumeError::NotSupported`].
    pub async fn change_xattr_by(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: &[u8],
        change: XattrChange,
    ) -> Outcome<()> {
        let checked = self.check_change(caller).and_then(|()| check_name(name)).and_then(|()| change.check());
        if let Err(error) = checked {
            return Outcome { result: Err(error), consistency: inode.unchanged() };
        }
        let begun = match self.begin_change(caller, inode).await {
            Ok(begun) => begun,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        let (caller, target, name) = (caller.clone(), Arc::clone(inode), Bytes::copy_from_slice(name));
        let work = |volume: Arc<Self>| async move {
            let _begun = begun;
            volume.change_xattr_now(&caller, &target, name, change).await
        };
        self.carried_through("change an extended attribute", work).await.unwrap_or_else(|| Outcome::failed(STOPPED))
    }

    async fn change_xattr_now(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: Bytes,
        change: XattrChange,
    ) -> Outcome<()> {
        if let Err(error) = self.attributes(inode).await {
            return Outcome { result: Err(error), consistency: inode.unchanged() };
        }
        if let Some(result) = self.done_before(caller, &[inode]).await {
            return Outcome { result, consistency: Consistency::default() };
        }
        let changing = inode.changing.lock().await;
        let made = self.make_xattr_change(caller, inode, name, change).await;
        let (consistency, stable) = match made {
            Ok(made) => made,
            Err(error) => return Outcome { result: Err(error), consistency: inode.unchanged() },
        };
        drop(changing);
        Outcome { result: self.made_durable(&[inode], stable).await, consistency }
    }

    /// With `changing` held.
    async fn make_xattr_change(
        &self,
        caller: &Caller,
        inode: &Arc<Inode<P>>,
        name: Bytes,
        change: XattrChange,
    ) -> Result<(Consistency, Stable), VolumeError> {
        if let Some(file) = inode.writable_file().filter(|file| name == CAPABILITY && !file.is_clean()) {
            // If earlier bytes cannot be written now, the host decides about the attribute when it gets them.
            let _ = self.engine.sync(file, 0..u64::MAX).await;
        }
        let look = inode.look();
        inode.changes.fetch_add(1, Ordering::Relaxed);
        let node = self.used(caller, inode)?;
        let ChangedAttributes { stat, stable } =
            self.tree.change_xattr(&node, name, change, self.are_names_durable()).await?;
        caller.note_done();
        let consistency = inode.changed(stat, self.now(), Times::Keep, Some(&look));
        self.settle_later(inode);
        self.tell_attributes(caller, inode);
        Ok((consistency, stable))
    }

    /// The node of an object that has not ended, for a caller.
    fn used(&self, caller: &Caller, inode: &Inode<P>) -> Result<Node, VolumeError> {
        if inode.has_ended() { Err(VolumeError::Stale) } else { Ok(inode.node.used_by(caller)) }
    }
}
