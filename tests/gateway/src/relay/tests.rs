use super::*;

/// A server of one connection that answers each of `answers` requests, which have bodies of 3 bytes, with 2 bytes.
fn server(answers: usize, request_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..answers {
            stream.read_exact(&mut vec![0; request_bytes]).unwrap();
            stream.write_all(b"ok").unwrap();
        }
    });
    address
}

#[test]
fn requests_pass_are_counted_and_answered_late() {
    let request = b"PUT /bucket/name HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET ";
    let delay = Duration::from_millis(40);
    let relay = Relay::start(server(3, request.len()), delay).unwrap();
    let mut client = TcpStream::connect(relay.address()).unwrap();
    for _ in 0..3 {
        let began = Instant::now();
        client.write_all(request).unwrap();
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"ok");
        assert!(began.elapsed() >= delay);
    }
    let (sent_bytes, received_bytes) = (3 * request.len() as u64, 6);
    assert_eq!(relay.asked(), Asked { puts: 3, sent_bytes, received_bytes, side_by_side: 1, ..Asked::default() });
}

#[test]
fn a_connection_that_the_store_ends_also_ends_for_its_client() {
    let request = b"GET / HTTP/1.1\r\n\r\n";
    let relay = Relay::start(server(1, request.len()), Duration::from_millis(1)).unwrap();
    let mut client = TcpStream::connect(relay.address()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(request).unwrap();
    let mut answers = Vec::new();
    client.read_to_end(&mut answers).unwrap();
    assert_eq!(answers, b"ok");
}

#[test]
fn a_link_carries_no_more_than_its_bandwidth() {
    let request = [&b"PUT /b/a HTTP/1.1\r\nContent-Length: 400000\r\n\r\n"[..], &[0; 400_000]].concat();
    let treatment = Treatment { bandwidth_bytes_per_s: 2_000_000, ..Treatment::default() };
    let relay = Relay::treating(server(1, request.len()), treatment).unwrap();
    let mut client = TcpStream::connect(relay.address()).unwrap();
    let began = Instant::now();
    client.write_all(&request).unwrap();
    client.read_exact(&mut [0; 2]).unwrap();
    // 200 ms, less what a late caller gets back.
    assert!(began.elapsed() >= Duration::from_millis(190));
}

#[test]
fn a_refused_request_does_not_reach_the_store() {
    let request = b"PUT /bucket/name HTTP/1.1\r\nContent-Length: 4\r\n\r\nGET ";
    let relay =
        Relay::treating(server(5, request.len()), Treatment { refuse_one_in: 3, ..Treatment::default() }).unwrap();
    let mut client = TcpStream::connect(relay.address()).unwrap();
    for at in 1..=6 {
        // Two parts: a body may come later than its head.
        client.write_all(&request[..request.len() - 2]).unwrap();
        client.write_all(&request[request.len() - 2..]).unwrap();
        let mut answer = [0; 2];
        client.read_exact(&mut answer).unwrap();
        if at % 3 > 0 {
            assert_eq!(&answer, b"ok");
            continue;
        }
        let mut refusal = answer.to_vec();
        while !refusal.ends_with(b"</Error>") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            refusal.push(byte[0]);
        }
        assert!(refusal.starts_with(b"HTTP/1.1 503 ") && refusal.windows(8).any(|part| part == b"SlowDown"));
    }
    let asked = relay.asked();
    assert_eq!((asked.puts, asked.refused, asked.received_bytes), (4, 2, 8));
}

#[test]
fn each_request_has_its_kind() {
    let kind = |line: &str| Head::parse(format!("{line} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap().kind;
    assert_eq!(kind("GET /bucket/a/b"), Kind::Get);
    assert_eq!(kind("HEAD /bucket/a"), Kind::Get);
    assert_eq!(kind("GET /bucket?list-type=2&prefix=a"), Kind::List);
    assert_eq!(kind("GET /bucket/"), Kind::List);
    assert_eq!(kind("POST /bucket/a?uploads"), Kind::Put);
    assert_eq!(kind("DELETE /bucket/a"), Kind::Delete);
}

#[test]
fn a_body_of_unknown_length_is_refused() {
    let chunked = b"PUT /b/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let endless = b"PUT /b/a HTTP/1.1\r\nContent-Length: many\r\n\r\n";
    for head in [&chunked[..], endless] {
        Head::parse(head).unwrap_err();
    }
}
