# The log's index is a mapping that processes share.
sqlite3 "$1/d" 'PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);' > /dev/null
add() {
    for i in $(seq 40); do
        sqlite3 -cmd '.timeout 20000' "$1/d" 'INSERT INTO t(b) VALUES (hex(randomblob(300)));'
    done
}
add "$1" & add "$1"
wait
[ "$(sqlite3 "$1/d" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\n' ' ')" = 'ok 80 ' ]
