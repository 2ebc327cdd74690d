#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use afflux_scratch::Scratch;

use super::writer::Block;
use super::*;

fn written_through(contender: &dyn Contender, directory: &Path) -> Vec<u8> {
    let file = contender.create(0, "file").unwrap();
    let block = Block::new(64 << 10);
    for at in 0..4 {
        file.write(at * (64 << 10), block.bytes()).unwrap();
    }
    file.sync().unwrap();
    let written = fs::read(directory.join("file")).unwrap();
    file.cut().unwrap();
    assert_eq!(fs::metadata(directory.join("file")).unwrap().len(), 0);
    written
}

#[test]
fn whoever_writes_the_bytes_are_on_the_disk_after_a_sync() {
    let scratch = Scratch::new(&std::env::temp_dir(), "contenders").unwrap();
    let directory = scratch.path();
    let whole = vec![0x5a; 256 << 10];
    for method in [KernelMethod::Buffered, KernelMethod::DontCache, KernelMethod::Direct] {
        match method.missing(directory) {
            Some(why) => afflux_scratch::skipped!("{method:?}: {why}"),
            None => {
                assert!(written_through(&Kernel::new(method, &[directory], None), directory) == whole, "{method:?}")
            }
        }
    }
    let setup = EngineSetup { policy: String::new(), knobs: Vec::new(), memory_bytes: 16 << 20 };
    let ours = Ours::new(&setup, &[directory]).unwrap();
    assert!(written_through(&ours, directory) == whole);
    let delays = ours.delays().unwrap();
    assert_eq!(delays["0"]["sync"]["count"], 1, "{delays}");
    assert!(Kernel::new(KernelMethod::Buffered, &[directory], None).delays().is_none(), "the kernel does not say");
    let left = fs::read_dir(directory).unwrap().count();
    assert_eq!(left, 1, "what was tried leaves nothing");
}

#[test]
fn policies_and_knobs_go_by_name() {
    let setup = |policy: &str, knob: &str| EngineSetup {
        policy: policy.to_owned(),
        knobs: vec![knob.to_owned()],
        memory_bytes: 16 << 20,
    };
    setup("", "dirty_ratio=30").check().unwrap();
    setup("linux-6.1", "dirty_ratio=30").check().unwrap();
    assert!(setup("sometimes", "dirty_ratio=30").check().unwrap_err().contains("no policy 'sometimes'"));
    assert!(setup("", "dirty_ratio=300").check().unwrap_err().contains("300"));
    assert_eq!(setup("", "").name(), "afflux");
    assert_eq!(setup("linux-6.1", "").name(), "afflux, linux-6.1");
}
