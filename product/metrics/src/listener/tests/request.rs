use super::super::*;

#[test]
fn what_is_asked_is_known_at_the_end_of_the_head_and_not_before() {
    let table: [(&[u8], ScrapeRequest); 12] = [
        (b"", ScrapeRequest::More),
        (b"GET /metr", ScrapeRequest::More),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n", ScrapeRequest::More),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", ScrapeRequest::Metrics { head_only: false }),
        (b"GET /metrics HTTP/1.0\n\n", ScrapeRequest::Metrics { head_only: false }),
        (b"HEAD /metrics?x=1 HTTP/1.1\r\n\r\n", ScrapeRequest::Metrics { head_only: true }),
        (b"GET / HTTP/1.1\r\n\r\n", ScrapeRequest::Index),
        (b"GET /../etc/passwd HTTP/1.1\r\n\r\n", ScrapeRequest::Refused(RequestRefusal::NoSuchPath)),
        (b"POST /metrics HTTP/1.1\r\n\r\n", ScrapeRequest::Refused(RequestRefusal::NoSuchMethod)),
        // The answer does not wait for more: such a beginning never becomes a request.
        (b"\x16\x03\x01\x02\n", ScrapeRequest::Refused(RequestRefusal::NotHttp)),
        (b"GET /metrics\r\n", ScrapeRequest::Refused(RequestRefusal::NotHttp)),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", ScrapeRequest::Refused(RequestRefusal::NotHttp)),
    ];
    for (bytes, expected) in table {
        assert_eq!(parse(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_head_is_bounded_whether_it_is_one_line_or_many() {
    let line = [b"GET /".as_slice(), &[b'a'; HEAD_BYTES_MAX]].concat();
    assert_eq!(parse(&line), ScrapeRequest::Refused(RequestRefusal::TooLong));
    let mut many = b"GET /metrics HTTP/1.1\r\n".to_vec();
    while many.len() < HEAD_BYTES_MAX {
        assert_eq!(parse(&many), ScrapeRequest::More);
        many.extend_from_slice(b"A: b\r\n");
    }
    assert_eq!(parse(&many), ScrapeRequest::Refused(RequestRefusal::TooLong));
}

#[test]
fn an_answer_says_how_long_it_is_and_that_it_is_the_last() {
    let text = |asked| String::from_utf8(answer(asked, || "t 1\n".to_owned())).unwrap();
    let figures = text(ScrapeRequest::Metrics { head_only: false });
    assert!(figures.starts_with("HTTP/1.1 200 OK\r\n") && figures.ends_with("\r\n\r\nt 1\n"), "{figures}");
    assert!(figures.contains("version=0.0.4") && figures.contains("Content-Length: 4\r\nConnection: close"));
    assert!(text(ScrapeRequest::Metrics { head_only: true }).ends_with("\r\n\r\n"));
    assert!(text(ScrapeRequest::Refused(RequestRefusal::NoSuchPath)).starts_with("HTTP/1.1 404 "));
    assert!(text(ScrapeRequest::Refused(RequestRefusal::NoSuchMethod)).contains("\r\nAllow: GET, HEAD\r\n"));
}

#[test]
fn nothing_is_made_for_who_did_not_ask_for_it() {
    answer(ScrapeRequest::Refused(RequestRefusal::NotHttp), || unreachable!());
    answer(ScrapeRequest::Index, || unreachable!());
}

#[test]
fn figures_are_for_those_who_ask_for_this_machine_by_address_or_its_own_name() {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let asked_for = |host: &str| parse(format!("GET /metrics HTTP/1.1\r\nhOST: {host}\r\nA: b\r\n\r\n").as_bytes());
    let with_port = format!("{}:9464", own.to_uppercase());
    for host in ["127.0.0.1:9464", "192.0.2.7", "[::1]:9464", "[::1]", "localhost:1", "LOCALHOST", &own, &with_port] {
        assert_eq!(asked_for(host), ScrapeRequest::Metrics { head_only: false }, "{host}");
    }
    for host in ["evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example", "", "a:b:c"] {
        assert_eq!(asked_for(host), ScrapeRequest::Refused(RequestRefusal::OtherHost), "{host}");
    }
    assert_eq!(parse(b"GET /metrics HTTP/1.0\r\n\r\n"), ScrapeRequest::Metrics { head_only: false }, "no name at all");
}
