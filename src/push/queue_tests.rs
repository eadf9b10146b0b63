//! The cases of istiod's push queue test, and its invariants, on our queue.

use super::*;
use crate::push::{Changed, Reason};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;

type Queue = PushQueue<u32, u32>;

fn request(payload: u32) -> PushRequest<u32> {
    PushRequest {
        payload: Some(Arc::new(payload)),
        ..PushRequest::new(Changed::Config, Reason::Config)
    }
}

async fn next(queue: &Queue) -> Job<u32, u32> {
    timeout(Duration::from_secs(60), queue.dequeue()).await.expect("somebody waits").unwrap()
}

async fn nobody(queue: &Queue) {
    let waited = timeout(Duration::from_secs(60), queue.dequeue()).await;
    assert!(waited.is_err(), "nobody should wait");
}

#[tokio::test(start_paused = true)]
async fn connections_come_out_in_order() {
    let queue = Queue::new();
    queue.enqueue(1, request(0));
    queue.enqueue(2, request(0));
    assert_eq!(next(&queue).await.connection, 1);
    assert_eq!(next(&queue).await.connection, 2);
    nobody(&queue).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_connection_keeps_its_place_and_its_start() {
    let queue = Queue::new();
    queue.enqueue(1, request(10));
    let start = Instant::now();
    tokio::time::advance(Duration::from_secs(1)).await;
    queue.enqueue(2, request(20));
    queue.enqueue(1, request(11));
    let job = next(&queue).await;
    assert_eq!((job.connection, job.since), (1, start));
    assert_eq!(job.request.payload.as_deref(), Some(&11));
    assert_eq!(job.request.reasons[&Reason::Config], 2);
    assert_eq!(next(&queue).await.connection, 2);
    nobody(&queue).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_being_served_is_handed_out_again_only_when_done_and_only_once() {
    let queue = Queue::new();
    queue.enqueue(1, request(0));
    let job = next(&queue).await;
    queue.enqueue(1, request(1));
    queue.enqueue(1, request(2));
    nobody(&queue).await;
    drop(job);
    let job = next(&queue).await;
    assert_eq!(job.request.payload.as_deref(), Some(&2));
    drop(job);
    nobody(&queue).await;
}

#[tokio::test(start_paused = true)]
async fn add_serve_done_add_serves_again() {
    let queue = Queue::new();
    queue.enqueue(1, request(0));
    drop(next(&queue).await);
    queue.enqueue(1, request(1));
    assert_eq!(next(&queue).await.request.payload.as_deref(), Some(&1));
    nobody(&queue).await;
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_first_is_woken_by_the_add() {
    let queue = Queue::new();
    let waiter = tokio::spawn({
        let queue = queue.clone();
        async move { next(&queue).await.connection }
    });
    tokio::task::yield_now().await;
    queue.enqueue(7, request(0));
    assert_eq!(waiter.await.unwrap(), 7);
}

#[tokio::test(start_paused = true)]
async fn one_add_wakes_one_of_two_waiters() {
    let queue = Queue::new();
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(
                async move { timeout(Duration::from_secs(60), queue.dequeue()).await.is_ok() },
            )
        })
        .collect();
    tokio::task::yield_now().await;
    queue.enqueue(1, request(0));
    let mut woken = 0;
    for waiter in waiters {
        woken += usize::from(waiter.await.unwrap());
    }
    assert_eq!(woken, 1);
}

#[tokio::test(start_paused = true)]
async fn two_adds_wake_two_waiters() {
    let queue = Queue::new();
    let waiters: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { next(&queue).await.connection })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.enqueue(1, request(0));
    queue.enqueue(2, request(0));
    let mut served = HashSet::new();
    for waiter in waiters {
        served.insert(waiter.await.unwrap());
    }
    assert_eq!(served, HashSet::from([1, 2]));
}

#[tokio::test(start_paused = true)]
async fn every_update_of_every_connection_arrives_and_none_goes_back() {
    let queue = Queue::new();
    let producer = tokio::spawn({
        let queue = queue.clone();
        async move {
            for update in 0..100 {
                for connection in 0..100 {
                    queue.enqueue(connection, request(update));
                }
                tokio::task::yield_now().await;
            }
            queue.close();
        }
    });
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let mut latest: HashMap<u32, u32> = HashMap::new();
    while let Some(job) = queue.dequeue().await {
        *counts.entry(job.connection).or_default() += job.request.reasons[&Reason::Config];
        let payload = **job.request.payload.as_ref().unwrap();
        let before = latest.insert(job.connection, payload);
        assert!(before.is_none_or(|before| before < payload));
        tokio::task::yield_now().await;
    }
    producer.await.unwrap();
    assert!((0..100).all(|c| counts[&c] == 100 && latest[&c] == 99), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_closed_queue_hands_out_what_it_has_and_accepts_nothing() {
    let queue = Queue::new();
    queue.enqueue(1, request(0));
    queue.close();
    queue.enqueue(2, request(0));
    assert_eq!(next(&queue).await.connection, 1);
    assert!(queue.dequeue().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn closing_wakes_everybody_who_waits() {
    let queue = Queue::new();
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.dequeue().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.close();
    for waiter in waiters {
        assert!(timeout(Duration::from_secs(60), waiter).await.unwrap().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn a_served_connection_leaves_nothing_behind() {
    let queue: PushQueue<Arc<()>, u32> = PushQueue::new();
    let connection = Arc::new(());
    queue.enqueue(connection.clone(), request(0));
    drop(queue.dequeue().await);
    assert_eq!(Arc::strong_count(&connection), 1);
}
