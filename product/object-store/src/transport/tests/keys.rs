use futures_util::FutureExt;
use object_store::StaticCredentialProvider;

use super::super::*;

fn source(keys: &str) -> Source<String> {
    Arc::new(StaticCredentialProvider::new(keys.to_owned()))
}

fn given(keys: &Arc<FreshKeys<String>>) -> String {
    keys.get_credential().now_or_never().unwrap().unwrap().as_ref().clone()
}

// rule: The sources of keys are asked again when the store refuses the present keys, and no more often than each two
// seconds.
#[test]
fn refused_keys_are_replaced_by_those_that_their_source_has_now() {
    let (doubt, kept) = (Arc::<Doubt>::default(), Arc::new(Mutex::new(Some("second".to_owned()))));
    let of_source = Arc::clone(&kept);
    let keys = FreshKeys::new(&doubt, source("first"), move || {
        let kept = of_source.lock().unwrap().clone();
        kept.map(|kept| source(&kept))
            .ok_or(object_store::Error::NotImplemented { operation: "keys".to_owned(), implementer: "none".to_owned() })
    });
    let age = |pause| keys.present.lock().unwrap().asked = Instant::now().checked_sub(pause).unwrap();
    age(PAUSE);
    assert_eq!(given(&keys), "first", "nobody doubts them");
    doubt.raise();
    keys.present.lock().unwrap().asked = Instant::now();
    assert_eq!(given(&keys), "first", "they were asked for just now");
    age(PAUSE);
    assert_eq!(given(&keys), "second");
    assert!(!doubt.is_raised());
    // A source without keys, as a file that is being written, takes none away.
    *kept.lock().unwrap() = None;
    doubt.raise();
    age(PAUSE);
    assert_eq!(given(&keys), "second");
    assert!(doubt.is_raised(), "it is asked again");
}
