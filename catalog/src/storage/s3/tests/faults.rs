//! Puts and reads while the store misbehaves.

use super::*;

/// The kinds of fault that can befall a put.
const OF_PUTS: [Fault; 7] = [
    Fault::Internal,
    Fault::SlowDown,
    Fault::Conflict,
    Fault::DoneThenInternal,
    Fault::LostAnswer,
    Fault::Silence,
    Fault::Slow(Duration::from_millis(50)),
];

#[tokio::test]
async fn a_put_that_is_done_and_not_answered_is_not_taken_for_another_ones() {
    for fault in OF_PUTS {
        let place = Place::new();
        let store = place.open().await;
        place.server.faults().add(Rule::next(fault, "PUT", "a/one", 1));
        create(&store, "a/one", "mine").await.unwrap();
        assert_eq!(place.server.faults().happened(fault), 1, "{fault:?}");
        assert_eq!(text(&store, "a/one").await, "mine");
        let other = create(&store, "a/one", "another").await;
        assert!(matches!(other, Err(Error::AlreadyExists { .. })), "{fault:?} {other:?}");
    }
}

#[tokio::test]
async fn a_lost_race_is_lost_whatever_the_answers() {
    for fault in OF_PUTS {
        let place = Place::new();
        let store = place.open().await;
        create(&store, "a/one", "theirs").await.unwrap();
        place.server.faults().add(Rule::next(fault, "PUT", "a/one", 1));
        // Of the same length, so that only the bytes tell them apart.
        let lost = create(&store, "a/one", "my own").await;
        assert!(matches!(lost, Err(Error::AlreadyExists { .. })), "{fault:?} {lost:?}");
        assert_eq!(place.server.faults().happened(fault), 1, "{fault:?}");
        assert_eq!(text(&store, "a/one").await, "theirs");
    }
}

#[tokio::test]
async fn a_put_ends_in_its_time_and_says_what_it_knows() {
    for (fault, is_there) in [
        (Fault::Internal, false),
        (Fault::SlowDown, false),
        (Fault::Conflict, false),
        (Fault::LostAnswer, true),
        (Fault::DoneThenInternal, true),
        (Fault::Silence, true),
    ] {
        let place = Place::new();
        let mut config = place.config();
        (config.attempt, config.patience) = (Duration::from_millis(200), Duration::from_millis(600));
        let store = S3::open(&config).await.unwrap();
        place.server.faults().add(Rule::share(fault, "PUT", 1_000));
        let begun = tokio::time::Instant::now();
        let put = create(&store, "a/one", "mine").await;
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{fault:?} {:?}",
            begun.elapsed()
        );
        assert!(place.server.faults().happened(fault) > 0, "{fault:?}");
        if is_there {
            put.unwrap();
            assert_eq!(text(&store, "a/one").await, "mine");
        } else {
            // Above all not "it exists".
            assert!(matches!(put, Err(Error::Generic { .. })), "{fault:?} {put:?}");
            let missing = store.get(&Path::from("a/one")).await;
            assert!(matches!(missing, Err(Error::NotFound { .. })), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn reads_are_whole_whatever_happens_to_the_answers() {
    let long: &'static str = Box::leak("0123456789".repeat(50_000).into_boxed_str());
    for fault in [
        Fault::Internal,
        Fault::SlowDown,
        Fault::LostAnswer,
        Fault::Silence,
        Fault::CutBody,
        Fault::StalledBody,
    ] {
        let place = Place::new();
        let store = place.open().await;
        create(&store, "a/one", long).await.unwrap();
        place.server.faults().add(Rule::next(fault, "GET", "a/one", 2));
        assert!(text(&store, "a/one").await == long, "{fault:?}");
        assert!(place.server.faults().happened(fault) > 0, "{fault:?}");
        place.server.faults().add(Rule::next(fault, "GET", "a/one", 1));
        let range = store.get_range(&Path::from("a/one"), 100_005..300_000).await.unwrap();
        assert!(range == long.as_bytes()[100_005..300_000], "{fault:?}");
    }
}

#[tokio::test]
async fn a_read_that_never_succeeds_ends_in_its_time() {
    for fault in [Fault::SlowDown, Fault::CutBody, Fault::StalledBody, Fault::Silence] {
        let place = Place::new();
        let mut config = place.config();
        (config.attempt, config.patience) = (Duration::from_millis(200), Duration::from_millis(600));
        let store = S3::open(&config).await.unwrap();
        create(&store, "a/one", "some text").await.unwrap();
        place.server.faults().add(Rule::share(fault, "GET", 1_000));
        let begun = tokio::time::Instant::now();
        let read = async { store.get(&Path::from("a/one")).await?.bytes().await };
        let read = read.await;
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "{fault:?} {:?}",
            begun.elapsed()
        );
        // A body that is cut in its middle each time still arrives, a half of the rest at a time.
        if !matches!(fault, Fault::CutBody) {
            read.unwrap_err();
        }
    }
}

/// Racing writers, and a store that misbehaves at every third request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_writers_one_wins_also_while_the_store_misbehaves() {
    let place = Place::new();
    let stores = [place.open().await, place.open().await];
    let faults = place.server.faults();
    let kinds = [
        Fault::Internal,
        Fault::SlowDown,
        Fault::Conflict,
        Fault::DoneThenInternal,
        Fault::LostAnswer,
    ];
    for fault in kinds {
        faults.add(Rule::share(fault, "PUT", 70));
    }
    for round in 0..12 {
        let path = format!("race/{round}");
        let writers = (0..16_usize).map(|writer| {
            let (store, path) = (stores[writer % 2].clone(), Path::from(path.as_str()));
            tokio::spawn(async move {
                let payload = PutPayload::from(format!("writer {writer:02}").into_bytes());
                store
                    .put_opts(&path, payload, PutMode::Create.into())
                    .await
                    .map(|_| writer)
            })
        });
        let mut winners = Vec::new();
        for put in join_all(writers).await {
            match put.unwrap() {
                Ok(writer) => winners.push(writer),
                Err(Error::AlreadyExists { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?}");
        assert_eq!(text(&stores[0], &path).await, format!("writer {:02}", winners[0]));
    }
    for fault in kinds {
        assert!(faults.happened(fault) > 0, "{fault:?} never happened");
    }
}
