import net.sf.okapi.common.LocaleId;
import net.sf.okapi.common.query.IQuery;
import net.sf.okapi.common.query.QueryResult;
import net.sf.okapi.common.resource.TextFragment;
import net.sf.okapi.lib.translation.BaseConnector;

/** Okapi's connectors against a server whose address is the first argument: one line for each, its name, how many
 * results it has, and score, text and codes of the first. */
public class Okapi {
    public static void main(String[] given) throws Exception {
        String url = given[0];
        TextFragment plain = new TextFragment(given[1]);
        TextFragment coded = new TextFragment("The ");
        coded.append(TextFragment.TagType.OPENING, "b", "<b>");
        coded.append("Commission");
        coded.append(TextFragment.TagType.CLOSING, "b", "</b>");
        coded.append(" shall inform ");
        coded.append(TextFragment.TagType.PLACEHOLDER, "x", "<x/>");
        coded.append(".");

        var apertium = new net.sf.okapi.connectors.apertium.ApertiumMTConnector();
        apertium.getParameters().setServer(url + "/apertium/translate");
        var mmt = new net.sf.okapi.connectors.mmt.MMTConnector();
        mmt.getParameters().setUrl(url + "/modernmt");
        var toolkit = new net.sf.okapi.connectors.translatetoolkit.TranslateToolkitTMConnector();
        System.out.println("usual\t" + toolkit.getParameters().getUrl() + "\t" + mmt.getParameters().getUrl());
        toolkit.getParameters().setUrl(url + "/tmserver/");
        toolkit.setThreshold(60);
        tell("apertium", apertium, plain, coded);
        tell("mmt", mmt, plain, coded);
        tell("toolkit", toolkit, plain, new TextFragment(given[2]));
    }

    static void tell(String name, BaseConnector connector, TextFragment... texts) {
        connector.setLanguages(LocaleId.fromString("en-US"), LocaleId.fromString("fr-FR"));
        connector.open();
        for (TextFragment text : texts) {
            int count = connector.query(text);
            StringBuilder line = new StringBuilder(name + "\t" + count);
            if (connector.hasNext()) {
                QueryResult one = connector.next();
                line.append("\t" + one.getCombinedScore() + "\t" + one.target.toText() + "\t" + one.target.getCodes().size());
            }
            System.out.println(line);
        }
        connector.close();
    }
}
