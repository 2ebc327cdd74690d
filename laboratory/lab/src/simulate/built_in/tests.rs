use afflux_workloads::Workload;

use super::parse;

fn said(text: &str) -> String {
    parse(text).expect("a built-in workload").map(drop).unwrap_err().to_string()
}

#[test]
fn readers_have_their_keys() {
    let Some(Ok(Workload::Readers(plain))) = parse("readers") else { panic!("readers alone will do") };
    assert_eq!((plain.count, plain.block_bytes, plain.file_bytes, plain.start_over_ns), (1000, 512, 1 << 20, 0));
    let text = "readers:over=0";
    let Some(Ok(Workload::Readers(at_once))) = parse(text) else { panic!("{text}") };
    assert_eq!(at_once.start_over_ns, 0);
    let text = "readers:count=20, size=1GiB,block=4KiB,over=270s,directory=/srv";
    let Some(Ok(Workload::Readers(readers))) = parse(text) else { panic!("{text}") };
    assert_eq!((readers.count, readers.block_bytes, readers.file_bytes), (20, 4096, 1 << 30));
    assert_eq!((readers.start_over_ns, readers.directory.as_str()), (270_000_000_000, "/srv"));
}

#[test]
fn an_nfs_client_has_its_keys() {
    let text = "nfs-client:size=2GB,record=64KiB,window=10MB,in-flight=8,link=1Gbit,delay=1ms,loss=0.1%";
    let Some(Ok(Workload::NfsClient(stream))) = parse(text) else { panic!("{text}") };
    let client = &stream.client;
    assert_eq!((client.file_bytes, client.record_bytes), (2_000_000_000, 65_536));
    assert_eq!((client.dirty_limit_bytes, client.in_flight), (10_000_000, 8));
    let link = &stream.link;
    assert_eq!((link.bits_per_second, link.delay_ns, link.loss_per_million), (1_000_000_000, 1_000_000, 1000));
    assert_eq!(stream.path(), "/nfs-client");
}

#[test]
fn other_names_are_job_files() {
    assert!(parse("backup.fio").is_none() && parse("reader:count=1").is_none());
}

#[test]
fn what_makes_no_sense_is_named() {
    for (text, part) in [
        (
            "readers:counts=1",
            "there is no key 'counts' (did you mean 'count'?); the keys are directory, count, size, block and over",
        ),
        ("readers:1000", "'1000' is not KEY=VALUE; the keys are "),
        ("readers:count=0", "count: '0' is not a number from 1 to 100,000"),
        ("readers:count=1,count=2", "count is there twice"),
        ("readers:size=big", "size: 'big' is not a size such as 64KiB, 512MiB or 2GB (1 byte to 16.0 TiB)"),
        ("readers:block=2MiB", "block: '2MiB' is out of range (1 byte to 1.00 MiB)"),
        ("readers:size=100,block=512", "block: it is more than size"),
        ("readers:size=1g", "size: '1g' is ambiguous: write 1GiB"),
        ("readers:over=soon", "over: 'soon' is not a time"),
        ("readers:over=20", "over: '20' is without a unit: write 20s"),
        ("nfs-client:link=fast", "rate=fast: it takes 1 kbit to 1000 Gbit a second"),
        ("nfs-client:rate=1Gbit", "there is no key 'rate'; the keys are directory, size, record, window"),
        ("nfs-client:in-flight=0", "in-flight: '0' is not a number from 1 to 65,536"),
    ] {
        let said = said(text);
        assert!(said.starts_with(&format!("'{text}': ")) && said.contains(part), "{said}");
    }
}
