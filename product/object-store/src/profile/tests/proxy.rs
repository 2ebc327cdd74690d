use super::super::*;

// rule: A text of the user is used, or refused with the reason.
#[test]
fn a_proxy_that_the_client_would_leave_out_is_refused_by_the_name_of_its_variable() {
    let checked = |name: &str, text: &str| check_proxies(&Variables::from([(name.to_owned(), text.to_owned())]));
    for name in PROXIES {
        for text in
            ["", "proxy:3128", "http://proxy:3128", "https://proxy", "http://me:p%20w@proxy:3128/", "http://[::1]:1"]
        {
            assert_eq!(checked(name, text), Ok(()), "{name}={text}");
        }
        for text in [
            "socks5://proxy:1080",
            "ftp://proxy",
            "http://",
            "http://proxy:port",
            "http://me:secret word@proxy",
            "proxy:1/",
            "/x",
        ] {
            let why = checked(name, text).unwrap_err();
            assert!(why.starts_with(name) && !why.contains("secret"), "{text}: {why}");
        }
    }
    assert_eq!(checked("NO_PROXY", "127.0.0.1, .local"), Ok(()));
}
