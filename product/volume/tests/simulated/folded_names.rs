//! A tree that holds names equal whose bytes differ: listings and lookups show what it has.

use std::collections::BTreeSet;
use std::sync::Arc;

use afflux_simulator::TreeOptions;
use afflux_volume::{AttributeChange, CreateHow, Inode, VolumeError};

use crate::clients::VolumeFixture;

type Object = Arc<Inode<afflux_simulator::SimPlatform>>;

impl VolumeFixture {
    /// All names, as a kernel asks for them: after each piece for the next one, until one is empty.
    fn names_of(&self, directory: &Object) -> BTreeSet<String> {
        let (mut names, mut cookie) = (BTreeSet::new(), 0);
        loop {
            let listing = self.run(self.volume.list(directory, cookie, 3, false)).unwrap();
            let Some(last) = listing.entries.last() else { return names };
            cookie = last.cookie;
            names.extend(listing.entries.iter().map(|entry| String::from_utf8(entry.name.to_vec()).unwrap()));
        }
    }
}

// rule: where a directory takes different bytes for one name, no listing shows a name that is not there
#[test]
fn a_changed_name_is_listed_as_the_host_has_it() {
    let lab = VolumeFixture::new(9, TreeOptions { folds_names: true, ..TreeOptions::default() });
    let volume = &lab.volume;
    let root = lab.run(volume.mount(b"/")).unwrap();
    let is = |wanted: &[&str]| {
        let wanted = [".", ".."].iter().chain(wanted).map(|name| (*name).to_owned()).collect();
        assert_eq!(lab.names_of(&root), wanted);
    };
    is(&[]);
    let how = CreateHow::Guarded(AttributeChange::default());
    let file = lab.run(volume.create(&root, b"Foo", how)).result.unwrap().0;
    is(&["foo"]);
    lab.run(volume.remove(&root, b"fOO")).result.unwrap();
    is(&[]);
    drop(file);
    lab.run(volume.make_directory(&root, b"Dd", AttributeChange::default())).result.unwrap();
    is(&["dd"]);
    lab.run(volume.rename(&root, b"dD", &root, b"Other")).0.result.unwrap();
    is(&["other"]);
    lab.run(volume.remove_directory(&root, b"OTHER")).result.unwrap();
    is(&[]);
    let file = lab.run(volume.create(&root, b"File", how)).result.unwrap().0;
    lab.run(volume.link(&file, &root, b"Second")).result.unwrap();
    is(&["file", "second"]);
    // A name that was looked up by another spelling goes with it.
    lab.run(volume.lookup(&root, b"FILE")).unwrap();
    lab.run(volume.remove(&root, b"file")).result.unwrap();
    assert_eq!(lab.run(volume.lookup(&root, b"FILE")).err(), Some(VolumeError::NotFound));
    is(&["second"]);
}
