// The lock of rslock behind the line protocol of tests/interop/README.md: rlock-interop rslock URL [URL ...]
use rand::Rng;
use rslock::{Lock, LockManager};
use std::io::{BufRead, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn milliseconds(word: &str) -> Duration {
    Duration::from_millis(word.parse().unwrap())
}

async fn take(manager: &LockManager, name: &str, ttl: Duration, waits: bool) -> Result<Lock, String> {
    loop {
        match manager.lock(name.as_bytes(), ttl).await {
            Ok(lock) => return Ok(lock),
            Err(error) if !waits => return Err(error.to_string()),
            // It gives up after a number of attempts.
            Err(_) => {
                let pause = rand::rng().random_range(0..200);
                tokio::time::sleep(Duration::from_millis(pause)).await
            }
        }
    }
}

async fn sections(manager: &LockManager, words: &[&str]) -> Result<(), String> {
    for _ in 0..words[1].parse().unwrap() {
        let lock = take(manager, words[0], milliseconds(words[3]), true).await?;
        let text = std::fs::read_to_string(words[2]).map_err(|error| error.to_string())?;
        let number: u64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        std::fs::write(words[2], (number + 1).to_string()).map_err(|error| error.to_string())?;
        manager.unlock(&lock).await;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let urls: Vec<String> = std::env::args().skip(2).collect();
    let mut manager = LockManager::new(urls);
    manager.set_retry(1, Duration::from_millis(1));
    let mut current: Option<Lock> = None;
    let wanted = include_str!("../Cargo.toml").split("\"=").nth(1).unwrap();
    println!("{{\"event\":\"ready\",\"version\":\"{}\"}}", wanted.split('"').next().unwrap());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        let result = match words[0] {
            "quit" => break,
            "try" | "lock" => match take(&manager, words[1], milliseconds(words[2]), words[0] == "lock").await {
                Ok(lock) => {
                    current = Some(lock);
                    Ok(())
                }
                Err(error) => Err(error),
            },
            "extend" => match manager.extend(current.as_ref().unwrap(), milliseconds(words[1])).await {
                Ok(lock) => {
                    current = Some(lock);
                    Ok(())
                }
                Err(error) => Err(error.to_string()),
            },
            "unlock" => {
                manager.unlock(current.as_ref().unwrap()).await; // without a result
                Ok(())
            }
            "sections" => sections(&manager, &words[1..]).await,
            _ => Err("it has none".to_string()),
        };
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as f64 / 1000.0;
        let error = result.as_ref().err().cloned().unwrap_or_default().replace(['"', '\\'], " ");
        println!(
            "{{\"command\":\"{}\",\"ok\":{},\"error\":\"{}\",\"at\":{}}}",
            words[0],
            result.is_ok(),
            error,
            at
        );
        std::io::stdout().flush().unwrap();
    }
}
