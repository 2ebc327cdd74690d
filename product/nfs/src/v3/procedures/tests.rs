use afflux_simulator::{Disk, DiskOptions, Memory, MemoryTree, Setup, SimMachine, TreeOptions, World, WorldOptions};
use afflux_volume::{AttributeChange, Client, CreateHow};

use super::*;
use crate::operations::Stability;
use crate::v3::arguments::Extent;

const PAGE: u32 = 4096;

// rule: a call that waits finds its object once
#[test]
fn a_call_that_waits_goes_on_with_the_object_that_it_has_found() {
    let world = World::new(WorldOptions::seed(1));
    let disk = Disk::new(&world, 0, DiskOptions::default());
    let tree = MemoryTree::new(&world, &disk, TreeOptions::default());
    let mut machine = SimMachine::new(&world, Memory::Whole(1 << 20), Setup::default()).unwrap();
    let volume = machine.add_tree("disk", &tree).unwrap();
    let answered = async {
        let root = volume.mount(b"").await.unwrap();
        let two_pages = AttributeChange { size: Some(2 * u64::from(PAGE)), ..AttributeChange::default() };
        let (file, _) = volume.create(&root, b"file", CreateHow::Guarded(two_pages)).await.result.unwrap();
        let bytes = [volume.handle(&file).as_bytes(), &[7; PAGE as usize]].concat();
        let handle = Field::from(0..bytes.len() - PAGE as usize);
        let data = Field::from(handle.range().end..bytes.len());
        let extent = Extent { offset: PAGE.into(), count: PAGE };
        let read = Arguments::Read(extent);
        for arguments in [read, Arguments::Write { extent, stability: Stability::Unstable, data }] {
            let asked = NfsCall { handle: Some(handle), arguments };
            let mut draft = Draft::accepted(1, Vec::new());
            let tried = try_answer(&volume, &Caller::SERVER, &bytes, &asked, &mut draft);
            let Err(object) = tried else { panic!("its page is not in the cache") };
            // Another look for the object would find none.
            let mut record = bytes.clone();
            record[handle.range()].fill(0);
            let by = OnBehalf { caller: Caller::SERVER, client: Client::named("client") };
            let call = WaitingCall { by, record: record.into(), arguments: asked.arguments, object, draft };
            assert_eq!(carry_out(&volume, call).await.status, NfsStatus::Ok);
        }
    };
    world.run(answered).unwrap();
}
