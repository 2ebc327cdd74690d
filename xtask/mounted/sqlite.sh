db() { sqlite3 -cmd 'PRAGMA synchronous=FULL' "$1" "$2"; }
db "$1/d" 'CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT); CREATE INDEX i ON t(b);'
for i in $(seq 30); do
    db "$1/d" "BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x < 100)
        INSERT INTO t(b) SELECT hex(randomblob(50)) FROM n; COMMIT;"
done
db "$1/d" 'DELETE FROM t WHERE a % 3 = 0; VACUUM;'
[ "$(db "$1/d" 'PRAGMA integrity_check; SELECT count(*) FROM t;' | tr '\n' ' ')" = 'ok 2000 ' ]
