use super::incomplete;
use crate::repository::TextFile;

fn faults(text: &str) -> usize {
    incomplete(&TextFile { path: "README.md".to_owned(), text: text.to_owned() }).len()
}

#[test]
fn options_of_a_mount_have_every_word() {
    for whole in [
        "sudo mount -t nfs -o vers=3,tcp,nolock,port=2049,mountport=2049 127.0.0.1:/ /mnt/x",
        "h:/  /mnt  nfs  vers=3,proto=tcp6,local_lock=all,port=1,mountport=1,mountproto=tcp,nofail  0  0",
        "let options = format!(\"vers=3,{protocol},nolock,port={port},mountport={port}\");",
        "mount_nfs -o vers=3,tcp,locallocks,resvport,port=2049,mountport=2049 h:/ /Volumes/disk",
        "OPTIONS=vers=3,tcp,hard,nolock",
        "mount -t nfs -o vers=3,udp,nolock,port=$PORT,mountport=$PORT h:/ /mnt",
    ] {
        assert_eq!(faults(whole), 0, "{whole}");
    }
    for (text, count) in [
        ("mount -o vers=3,nolock,port=2049,mountport=2049 h:/ /mnt", 1),
        ("mount -o vers=3,tcp,port=2049,mountport=2049 h:/ /mnt", 1),
        ("`vers=3,tcp,nolock,mountport=2049`", 1),
        ("mount_nfs -o vers=3,tcp,nolocks,port=2049 h:/ /mnt", 2),
    ] {
        assert_eq!(faults(text), count, "{text}");
    }
}
