use super::super::*;

// rule: A failure has the same words in each command, and "no answer" is said of silence alone.
#[test]
fn an_answer_is_not_told_as_no_answer_also_after_its_last_repeat() {
    let address = Address::parse("s3://b/home").unwrap();
    let words = || "SlowDown".to_owned();
    let told = |failure: RequestFailure| {
        let over = RequestFailure::Over(Box::new(failure.clone()));
        let (first, last) = (advice("s3://b/home", &address, failure), advice("s3://b/home", &address, over));
        assert_eq!(first, last);
        first.to_string()
    };
    for failure in [RequestFailure::Busy, RequestFailure::Unknown] {
        let said = told(failure(TransientFailure::ByStore(words())));
        assert!(said.contains("answers with failures (SlowDown)"), "{said}");
        let said = told(failure(TransientFailure::ByConnection(words())));
        assert!(said.contains("no answer from the store (SlowDown)"), "{said}");
    }
    for failure in [RequestFailure::Denied, RequestFailure::Region, RequestFailure::Refused, RequestFailure::Full] {
        assert!(told(failure(words())).contains("SlowDown"));
    }
}
