import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;

/** Opens the URL in its argument and prints who is logged in; what is wrong goes to standard error. */
public final class Select {
    public static void main(String[] arguments) throws Exception {
        String query = "SELECT session_user";
        try (Connection connection = DriverManager.getConnection(arguments[0]);
                ResultSet row = connection.createStatement().executeQuery(query)) {
            row.next();
            System.out.println(row.getString(1));
        }
    }
}
