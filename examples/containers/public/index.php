<?php

// Counts visits in the database, remembers the number in the cache, and stores uploads: docs/guide/containers.md.

$database = new PDO(getenv('DATABASE'), getenv('DATABASE_USER'), getenv('DATABASE_PASSWORD'));
$database->exec('CREATE TABLE IF NOT EXISTS visit (id INT AUTO_INCREMENT PRIMARY KEY)');
$database->exec('INSERT INTO visit VALUES ()');

$cache = new Redis();
$cache->connect(getenv('CACHE'));
$cache->set('visits', $database->lastInsertId());

if (isset($_FILES['file'])) {
    move_uploaded_file($_FILES['file']['tmp_name'], __DIR__ . '/uploads/' . basename($_FILES['file']['name']));
}

header('Content-Type: text/plain');
printf("visit %s, 2^100 is %s\n", $cache->get('visits'), gmp_pow(2, 100));
