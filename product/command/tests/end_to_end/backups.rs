//! Programs that copy and count whole trees, on a mount with several file systems below it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mounted::{Mounted, apart, can_mount, shell};
use crate::scratch::Scratch;
use crate::server::text;

/// File systems mounted below a directory from images. They are unmounted at the end.
struct Below(Vec<PathBuf>);

impl Drop for Below {
    fn drop(&mut self) {
        for point in self.0.drain(..).rev() {
            let _ = Command::new("umount").arg("-l").arg(point).output();
        }
    }
}

impl Below {
    fn mount(&mut self, images: &Path, point: &Path, kind: &str) -> bool {
        fs::create_dir(point).unwrap();
        let image = images.join(format!("image{}", self.0.len()));
        let script = format!(
            "truncate -s 320M '{image}'; mkfs.{kind} -q '{image}'; mount -o loop '{image}' '{point}'",
            image = image.display(),
            point = point.display()
        );
        let made = shell(&script, images);
        if !made.status.success() {
            afflux_scratch::skipped!("no {kind}: {}", String::from_utf8_lossy(&made.stderr).trim());
            return false;
        }
        self.0.push(point.to_owned());
        true
    }
}

const FILL: &str = "for at in $DIRECTORIES; do mkdir -p $at/a/b
for i in 1 2 3 4; do echo $at $i > $at/a/f$i; ln $at/a/f$i $at/a/b/g$i; done; done";

// rule: find, du, tar, rsync and cp see each file once below a mount, whatever is mounted there
#[test]
fn copies_of_a_tree_over_several_file_systems_are_the_tree() {
    if !can_mount() {
        return;
    }
    for kind in ["ext4", "xfs", "btrfs"] {
        let scratch = Scratch::new();
        let (data, point) = apart(&scratch);
        let (images, home) = (scratch.directory("images"), scratch.directory("home"));
        let mut below = Below(Vec::new());
        // The export itself is such a file system, with another one below it and one below that.
        fs::remove_dir(&data).unwrap();
        let places = [data.clone(), data.join("one"), data.join("one/two")];
        if !places.iter().all(|place| below.mount(&images, place, kind)) {
            continue;
        }
        let mounted = Mounted::start(&home, &data, &point);
        let filled = shell(&FILL.replace("$DIRECTORIES", ". one one/two"), &point);
        assert!(filled.status.success(), "{}", text(&filled));
        let copies = scratch.directory("copies");
        let script = "
            find ../point | sort > found; (cd ../data; find . | sed 's/^./..\\/point/') | sort > expected; cmp found expected
            tar cf all.tar -C ../point .; mkdir tar cp; tar xf all.tar -C tar
            rsync -aH ../point/ rsync/
            cp -a ../point/. cp/
            for copy in tar rsync cp; do
                diff -r ../point $copy
                test $(find $copy -type f -links 2 | wc -l) = 24
                test $(find $copy -type f -printf '%i\\n' | sort -u | wc -l) = 12
            done
            test $(find ../point -printf '%D %i\\n' | sort -u | wc -l) = $(($(wc -l < found) - 12))
            test \"$(du -s --apparent-size --block-size=1 ../point | cut -f1)\" = \
                \"$(du -s --apparent-size --block-size=1 ../data | cut -f1)\"
            ls -aif ../point/one | sort > listed; stat -c '%i %n' $(ls -a ../point/one | sed 's/^/..\\/point\\/one\\//') |
                sed 's/ .*one.\\([^\\/]*\\)$/ \\1/' | sort > looked
            sed 's/^ *//' listed | sort | diff - looked";
        let output = shell(script, &copies);
        assert!(output.status.success(), "{kind}: {}", text(&output));
        assert!(output.stderr.is_empty(), "{kind}: {}", text(&output));
        mounted.stop();
    }
}
