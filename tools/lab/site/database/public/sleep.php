<?php
$database = new PDO('mysql:unix_socket=@SOCKET@;dbname=lab', 'root', '', [PDO::ATTR_PERSISTENT => true]);
echo $database->query('SELECT SLEEP(0.03)')->fetchColumn();
