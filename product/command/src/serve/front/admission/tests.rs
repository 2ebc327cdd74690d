use afflux_frontend::UserGroups;

use super::*;

#[test]
fn whom_a_server_answers_is_said() {
    let of_callers = Rules::of_callers(Arc::new(|_| UserGroups::default()));
    assert_eq!(describe(&of_callers), "everybody on this machine, as themselves");
    assert_eq!(describe(&Rules::of_serving_user(0)), "root's processes on this machine");
    assert!(describe(&Rules::of_serving_user(7)).starts_with("this user's and root's processes"));
    let all = Rules { squash: Squash::All, read_only: true, ..Rules::of_serving_user(7) };
    assert_eq!(describe(&all), "everybody on this machine, all as this user, for reading only");
    let networks = vec!["192.0.2.0/24=ro".parse().unwrap(), "198.51.100.7".parse().unwrap()];
    let open = Rules { networks, ..of_callers };
    assert!(
        describe(&open).ends_with(
            "; 192.0.2.0/24=ro, 198.51.100.7/32 from ports below 1024, as the user that they claim, except root"
        ),
        "{}",
        describe(&open)
    );
    let wide = Rules { any_port: true, squash: Squash::None, ..open };
    assert!(
        describe(&wide).ends_with("from any port, as the user that they claim, including root"),
        "{}",
        describe(&wide)
    );
    let here = "127.0.0.1:7".parse().unwrap();
    let everywhere = "0.0.0.0:7".parse().unwrap();
    assert_eq!(oddities(&wide, everywhere), ["root of an allowed machine is root here (--squash none)"]);
    assert_eq!(oddities(&all, everywhere), ["nobody on another machine is answered without --allow"]);
    assert_eq!(oddities(&wide, here).len(), 2);
    assert!(oddities(&all, here).is_empty());
}
